"""Settings of the games of Pgx."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from azero.games.settings import GameConfig


@dataclass(frozen=True)
class PgxConfig(GameConfig):
    """A game of Pgx: two players, no chance, nothing hidden (`pip install 'azero[peers]'`)."""

    RULES: ClassVar[str] = "azero.interop.pgx:PgxGame.of_id"

    name: Literal["pgx"] = "pgx"
    """Which game: one of Pgx."""
    id: str = "connect_four"
    """Pgx's name of the environment: connect_four, othello, hex ..."""
    max_moves: int | None = None
    """Moves after which a game is drawn; None is the longest that the game can last (connect_four
    42, othello 128, hex 122), or 512 where that is not known."""

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the class of the rules."""
        return {"id": self.id, "max_moves": self.max_moves}
