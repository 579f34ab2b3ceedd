"""The table of games, by name."""

from azero.games.chess.rules import Chess
from azero.games.go.rules import Go
from azero.games.shogi.rules import Shogi
from azero.games.tictactoe import TicTacToe

GAMES = {"chess": Chess, "go": Go, "shogi": Shogi, "tictactoe": TicTacToe}
