"""The settings and the state of a game of Go, which the compiled rules (`rules`) and those of the
host (`host`) share."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from flax import struct

from azero.games.go import encoding
from azero.types import Array

Superko = Literal["positional", "situational", "simple"]


@dataclass(frozen=True, init=False)
class GoRules:
    """The settings of a game of Go and what follows from them at once."""

    board_shape: tuple[int, int]
    komi: float
    """points added to White's area"""
    superko: Superko
    suicide: bool
    max_moves: int
    num_planes: int
    """17: AlphaGo Zero's; 18: these and one of White to move; 19: these and two of the komi; 4, 12,
    20, 48 or 49: the first of AlphaGo's of 2016; 6, 10: the inputs of its rollout and tree
    policies"""
    margin_weight: float
    """share of the reward that is the margin"""

    num_frames: ClassVar[int] = encoding.NUM_FRAMES

    @property
    def num_points(self) -> int:
        """Points of the board, N."""
        return self.board_shape[0] * self.board_shape[1]

    @property
    def num_actions(self) -> int:
        """Points and pass."""
        return self.num_points + 1

    @property
    def shows_komi(self) -> bool:
        """Whether the planes show the komi. If so, every state has its own komi, and games with
        different komi can be in one batch."""
        return self.num_planes == encoding.NUM_KOMI_PLANES

    def result_of(self, points: float) -> float:
        """Host side: return Black's reward of a finished game from its `final_points`."""
        margin = np.float64(points - self.komi)
        return float(self._reward(np.sign(margin), margin / self.num_points))

    def _reward(self, result: Any, margin: Any) -> Any:
        """Return Black's reward from the result and the margin as a share of the board, which may
        exceed 1 because of komi."""
        return (
            (1.0 - self.margin_weight) * result + self.margin_weight * margin.clip(-1.0, 1.0)
            if self.margin_weight
            else result
        )


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
