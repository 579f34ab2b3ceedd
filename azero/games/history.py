"""What chess, shogi and their small relatives share: states that keep their newest positions, and
planes that show some of them."""

import abc
import dataclasses
import functools
from collections.abc import Sequence
from types import ModuleType
from typing import ClassVar, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np

from azero.config import check_range
from azero.games.game import Facts
from azero.games.symmetry import IdentityOnly
from azero.types import Array, PyTree

NUM_FRAMES = 8
"""Positions that a state keeps, and that the planes show by default (AZ, supplement: T = 8)."""


class Encoding(Protocol):
    """The module `encoding` of a game."""

    PLANES_PER_FRAME: int
    ENDS: int
    """Planes of the newest position alone."""

    def planes_from_frames(self, frames: Array, to_play: Array, /) -> Array:
        """Return the planes float32[H, W, C] of frames uint32[T, F], newest first."""


class WithHistory(IdentityOnly, abc.ABC):
    """The part of a game, a frozen dataclass with a field `history`, that needs only its modules
    `encoding` and `text` and of a state only `frames` uint32[8, F], newest first, and `ending`
    int32[], 0 until the game is over."""

    max_moves: int
    history: int
    num_actions: ClassVar[int]
    num_frames: ClassVar[int] = NUM_FRAMES
    board_shape: ClassVar[tuple[int, int]]
    REVERSED_AXES: ClassVar[tuple[int, ...]] = (0, 1)
    """Axes of the planes that the other side sees in the opposite order: ranks and files."""
    MOST_MOVES: ClassVar[int]
    """Largest `max_moves`."""
    NOTATION: ClassVar[str]
    """fen or sfen; the field of this name is the start position."""
    ENCODING: ClassVar[Encoding]
    TEXT: ClassVar[ModuleType]
    ENDINGS: ClassVar[tuple[str, ...]]
    """How a game ended, by a state's `ending`."""

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
          ValueError: an option is out of range, or the start is not a position; it is quoted with
            what is allowed.
        """
        check_range(self, "", "max_moves", 1, self.MOST_MOVES)
        check_range(self, "", "history", 1, NUM_FRAMES)
        getattr(self.TEXT, f"parse_{self.NOTATION}")(self._start)

    @property
    def _start(self) -> str:
        return str(getattr(self, self.NOTATION))

    def init(self) -> PyTree:
        """Return the start position, by default the usual one."""
        return self._from_position(self._start)

    def _from_position(self, line: str) -> PyTree:
        """Return a game that starts from a position in FEN or SFEN: `from_fen` or `from_sfen` of a
        game. Host side.

        Raises:
          ValueError: it is not a position of the game; what is wrong is named.
        """
        return jax.tree.map(jnp.asarray, _host_state(self, line))

    @abc.abstractmethod
    def from_positions(self, lines: Sequence[str]) -> PyTree:
        """Return games that start from positions in FEN or SFEN, as numpy arrays [P, ...]. Host
        side.

        Raises:
          ValueError: a line is not a position of the game; what is wrong is named.
        """

    @abc.abstractmethod
    def to_play(self, state: PyTree) -> Array:
        """Return int32[]: 0 for the first mover of the game, 1 for the second."""

    @abc.abstractmethod
    def rewards(self, state: PyTree) -> Array:
        """Return float32[2], the results of the first and the second mover; zero until the end."""

    @property
    def num_planes(self) -> int:
        """Planes that a network sees."""
        return self.history * self.ENCODING.PLANES_PER_FRAME + self.ENCODING.ENDS

    def seen_as(self, trained: "WithHistory") -> Self:
        """Return the same rules with the planes of `trained`, the game that a network has
        learned."""
        return dataclasses.replace(self, history=trained.history)  # type: ignore[type-var]

    def is_terminal(self, state: PyTree) -> Array:
        """Return bool[]: the game is over."""
        return state.ending != 0

    def observe(self, state: PyTree) -> Array:
        """Return the planes float32[H, W, C] (see the game's `encoding`)."""
        return self.observe_frames(state.frames, self.to_play(state))

    def pack_frame(self, state: PyTree) -> Array:
        """Return uint32[F]: the newest position (see the game's `position`)."""
        return state.frames[0]

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes float32[H, W, C] of frames uint32[8, F], newest first."""
        return self.ENCODING.planes_from_frames(frames[: self.history], to_play)

    def ending(self, state: PyTree) -> str:
        """Host side: return how a game that is over ended."""
        return self.ENDINGS[int(state.ending)]

    def host_facts(self, state: PyTree) -> Facts:
        """Host side: return who is to move, whether the game is over, the rewards and the legal
        moves, without a compiled program."""
        is_over = bool(self.is_terminal(state))
        legal = np.full(self.num_actions, is_over)
        if not is_over:
            legal[list(self.TEXT.board_of_state(state).actions)] = True
        first, second = np.asarray(self.rewards(state)).tolist() if is_over else (0.0, 0.0)
        return Facts(int(self.to_play(state)), is_over, (first, second), legal)

    def seen_by_other(self, policy: Array) -> Array:
        """Return a policy [A] over one side's moves with every move on the square where the other
        side sees it; the moves of a square keep their order."""
        squares = policy.reshape(*self.board_shape, -1)
        return jnp.flip(squares, self.REVERSED_AXES).reshape(-1)

    def format_board(self, state: PyTree) -> str:
        """Return the diagram from the first mover's side, with pieces in hand, and the FEN or SFEN
        below it."""
        return self.TEXT.format_diagram(self.TEXT.board_of_state(state))


@functools.cache
def _host_state(game: WithHistory, line: str) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[0], game.from_positions([line]))


def with_facts(frame: Array, bits: Array) -> Array:
    """Return the frame uint32[F] with `bits` uint32[] set in its last word."""
    is_last = jnp.arange(frame.shape[0], dtype=jnp.int32) == frame.shape[0] - 1
    return jnp.where(is_last, frame | bits, frame)
