"""Rules of games: no network, no search."""

from azero.games.game import Game, make

__all__ = ["Game", "make"]
