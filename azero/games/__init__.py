"""Rules of games: no network, no search."""
