"""The table of games, by name."""

from azero.games.animal_shogi.rules import AnimalShogi
from azero.games.chess.rules import Chess
from azero.games.go.rules import Go
from azero.games.minichess.rules import Minichess
from azero.games.shogi.rules import Shogi
from azero.games.tictactoe import TicTacToe

GAMES = {"animal_shogi": AnimalShogi, "chess": Chess, "go": Go, "minichess": Minichess, "shogi": Shogi, "tictactoe": TicTacToe}

SIDES = {
    "go": ("Black", "White"),
    "shogi": ("Black", "White"),
    "chess": ("White", "Black"),
    "minichess": ("White", "Black"),
    "tictactoe": ("X", "O"),
}
"""What the first and the second mover are called, where they have names."""
