"""Settings of tic-tac-toe."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from azero.games.settings import GameConfig


@dataclass(frozen=True)
class TicTacToeConfig(GameConfig):
    """Tic-tac-toe, which has no options."""

    RULES: ClassVar[str] = "azero.games.tictactoe.rules:TicTacToe"

    name: Literal["tictactoe"] = "tictactoe"
    """Which game."""
