"""Settings of games: which one, and its rules. Each game's class is in its folder."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from azero.config import Kind, check_range


@dataclass(frozen=True)
class GameConfig(Kind):
    """A game and its rules; `build()` makes its `azero.games.game.Game`."""

    KINDS: ClassVar[Mapping[str, str]] = {
        "animal_shogi": "azero.games.animal_shogi.settings:AnimalShogiConfig",
        "chess": "azero.games.chess.settings:ChessConfig",
        "go": "azero.games.go.settings:GoConfig",
        "minichess": "azero.games.minichess.settings:MinichessConfig",
        "pgx": "azero.interop.settings:PgxConfig",
        "shogi": "azero.games.shogi.settings:ShogiConfig",
        "tictactoe": "azero.games.tictactoe.settings:TicTacToeConfig",
    }
    """The table of games."""
    MAKER: ClassVar[str] = "azero.games.table:build"
    RULES: ClassVar[str]
    """The class of the game's rules."""

    name: str
    start_positions: ClassVar[str | None] = None
    """A setting of games that can start from positions of a file."""
    selfplay_komis: ClassVar[tuple[float, ...]] = ()
    """A setting of games with a komi."""

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the class of the rules."""
        return {}

    def for_matches(self) -> Self:
        """Return the same game with rewards that depend on the winner alone."""
        return self

    def seen_as(self, trained: "GameConfig") -> Self:
        """Return these rules with the planes of a network that learned with `trained`."""
        return self

    def __post_init__(self) -> None:
        if hasattr(self, "max_moves"):
            check_range(self, "game", "max_moves", 1)


@dataclass(frozen=True)
class PiecesConfig(GameConfig):
    """What games of pieces have in common."""

    max_moves: int | None = None
    """Moves after which the game is drawn; None is the game's own number (chess and shogi: 512, AZ;
    their small relatives: 256)."""
    start_positions: str | None = None  # type: ignore[misc]
    """File of positions, one a line (FEN, SFEN); every game of self-play starts from one drawn at
    random. None is the game's own start."""
    history: int | None = None
    """Positions in the planes, 1 to 8; None is 8 (AZ, supplement). Fewer make a small network
    faster."""

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the class of the rules."""
        given = {"max_moves": self.max_moves, "history": self.history}
        return {name: value for name, value in given.items() if value is not None}

    def seen_as(self, trained: GameConfig) -> Self:
        """Return these rules with the planes of a network that learned with `trained`."""
        known = trained if isinstance(trained, PiecesConfig) else self
        return dataclasses.replace(self, history=known.history)
