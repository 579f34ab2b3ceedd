"""Settings of chess."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from azero.games.settings import PiecesConfig


@dataclass(frozen=True)
class ChessConfig(PiecesConfig):
    """Chess."""

    RULES: ClassVar[str] = "azero.games.chess.rules:Chess"

    name: Literal["chess"] = "chess"
    """Which game."""
