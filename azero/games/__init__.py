"""Rules of games: no network, no search."""

from azero.games.game import Game
from azero.games.table import make

__all__ = ["Game", "make"]
