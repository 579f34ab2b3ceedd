"""Settings of minichess."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from azero.games.settings import PiecesConfig


@dataclass(frozen=True)
class MinichessConfig(PiecesConfig):
    """Minichess."""

    RULES: ClassVar[str] = "azero.games.minichess.rules:Minichess"

    name: Literal["minichess"] = "minichess"
    """Which game."""
