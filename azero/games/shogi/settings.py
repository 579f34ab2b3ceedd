"""Settings of shogi."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from azero.games.settings import PiecesConfig


@dataclass(frozen=True)
class ShogiConfig(PiecesConfig):
    """Shogi."""

    RULES: ClassVar[str] = "azero.games.shogi.rules:Shogi"

    name: Literal["shogi"] = "shogi"
    """Which game."""
    entering_king: bool = True
    """The side to move wins as soon as it could declare an entering king by the 27-point rule, as
    in play between programs today. AlphaZero's matches had no such rule (AZ: Elmo's
    EnteringKingRule was NoEnteringKing)."""
    repetition_moves: int | None = None
    """A recurring position counts as a repetition if it occurred at most this many moves ago; each
    move takes four bytes of a state. None is 192; max-moves is the whole game, as in the rules."""

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the class of the rules."""
        window = (
            {} if self.repetition_moves is None else {"repetition_moves": self.repetition_moves}
        )
        return super().options() | window | {"entering_king": self.entering_king}
