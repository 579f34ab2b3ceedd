"""Settings of animal shogi."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from azero.games.settings import PiecesConfig


@dataclass(frozen=True)
class AnimalShogiConfig(PiecesConfig):
    """Animal shogi."""

    RULES: ClassVar[str] = "azero.games.animal_shogi.rules:AnimalShogi"

    name: Literal["animal_shogi"] = "animal_shogi"
    """Which game."""
