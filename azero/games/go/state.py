"""The state of a game of Go, which the compiled rules (`rules`) and those of the host (`host`)
share."""

from __future__ import annotations

from typing import Literal, Protocol

from flax import struct

from azero.types import Array

Superko = Literal["positional", "situational", "simple"]


class GoRules(Protocol):
    """The part of `azero.games.go.rules.Go` that the host needs."""

    @property
    def board_shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def komi(self) -> float:
        """Points added to White's area."""
        ...

    @property
    def superko(self) -> Superko:
        """Which repetitions are illegal."""
        ...

    @property
    def suicide(self) -> bool:
        """Whether a move may capture its own chain."""
        ...

    @property
    def max_moves(self) -> int:
        """Moves after which the game is scored."""
        ...

    @property
    def num_frames(self) -> int:
        """Newest boards that a state keeps."""
        ...

    @property
    def num_points(self) -> int:
        """Points of the board."""
        ...

    @property
    def num_actions(self) -> int:
        """Points and the pass."""
        ...

    @property
    def shows_komi(self) -> bool:
        """Whether the planes show the komi, so that a state has it."""
        ...

    def result_of(self, points: float) -> float:
        """Return Black's reward of a finished game in which Black leads by `points` before komi."""
        ...


@struct.dataclass
class GoState:
    """A position with its past; K = ceil(H*W / 32) words hold one set of points; codes are those of
    `stones.mix`."""

    frames: Array
    """uint32[8, 2K]: the eight newest boards, newest first, Black's words before White's; zeros
    before the start"""
    atari: Array
    """uint32[K]: stones of chains with exactly one liberty"""
    sums: Array
    """uint32[2, 8]: sums of codes of Black's and of White's stones on the boards of `frames`"""
    history: Array | None
    """uint32[2, max_moves + 1]: the same sums of all positions of the game, oldest first; None in a
    search tree, and with simple ko"""
    to_play: Array
    """int32[]: 0 Black, 1 White"""
    num_passes: Array
    """int32[]: passes in a row"""
    num_moves: Array
    """int32[]: moves played, passes and moves of a side skipped included"""
    komi: Array | None = None
    """int32[]: twice the komi, where the planes show it; None where only the rules have it"""
