"""The table of games, by name."""

from azero.games.go.rules import Go
from azero.games.tictactoe import TicTacToe

GAMES = {"go": Go, "tictactoe": TicTacToe}
