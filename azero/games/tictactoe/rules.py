"""Tic-tac-toe: a solved game for tests and smoke runs."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.games.symmetry import WithSymmetries
from azero.types import Array

# Bit 3 * row + column. Three rows, three columns, two diagonals.
_LINES = (
    0b000000111,
    0b000111000,
    0b111000000,
    0b001001001,
    0b010010010,
    0b100100100,
    0b100010001,
    0b001010100,
)
_FULL = 0b111111111


@struct.dataclass
class TicTacToeState:
    """Both players' squares, nine bits each; the first mover's are first."""

    boards: Array
    """uint32[2]"""


@dataclass(frozen=True)
class TicTacToe(WithSymmetries):
    """Three in a row on a 3x3 board. Actions 0..8 are the squares row by row; planes are own
    squares, the other's squares, 1 for the first mover to play."""

    name: ClassVar[str] = "tictactoe"
    num_actions: ClassVar[int] = 9
    max_legal_actions: ClassVar[int] = 9
    board_shape: ClassVar[tuple[int, int]] = (3, 3)  # type: ignore[misc]
    num_planes: ClassVar[int] = 3
    max_moves: ClassVar[int] = 9
    num_frames: ClassVar[int] = 1
    frame_words: ClassVar[int] = 1
    num_symmetries: ClassVar[int] = 8

    def init(self) -> TicTacToeState:
        """Return the empty board."""
        return TicTacToeState(boards=jnp.zeros(2, jnp.uint32))

    def step(self, state: TicTacToeState, action: Array) -> TicTacToeState:
        """Occupy square `action` (int32[]) for the side to move. A finished game stays as it is."""
        square = jnp.uint32(1) << jnp.asarray(action).astype(jnp.uint32)
        mover = jnp.arange(2) == self.to_play(state)
        played = state.boards | jnp.where(mover, square, jnp.uint32(0))
        return TicTacToeState(boards=jnp.where(self.is_terminal(state), state.boards, played))

    def legal_action_mask(self, state: TicTacToeState) -> Array:
        """Return bool[9]: the free squares; all True once the game is over."""
        return ~_unpack(state.boards[0] | state.boards[1]) | self.is_terminal(state)

    def to_play(self, state: TicTacToeState) -> Array:
        """Return int32[]: 0 if the first mover is to move, else 1."""
        return jnp.bitwise_count(state.boards[0] | state.boards[1]).astype(jnp.int32) & 1

    def is_terminal(self, state: TicTacToeState) -> Array:
        """Return bool[]: a player has three in a row or the board is full."""
        return _has_line(state.boards).any() | ((state.boards[0] | state.boards[1]) == _FULL)

    def rewards(self, state: TicTacToeState) -> Array:
        """Return float32[2]: +1 for the side with three in a row, -1 for the other, else zero."""
        lines = _has_line(state.boards).astype(jnp.float32)
        return lines - lines[::-1]

    def observe(self, state: TicTacToeState) -> Array:
        """Return bool[3, 3, 3]."""
        return self.observe_frames(self.pack_frame(state)[None], self.to_play(state))

    def search_state(self, state: TicTacToeState) -> TicTacToeState:
        """Return the state: there is nothing to drop."""
        return state

    def pack_frame(self, state: TicTacToeState) -> Array:
        """Return uint32[1]: the first mover's squares in bits 0..8, the second's in bits 9..17."""
        return (state.boards[0] | (state.boards[1] << 9))[None]

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes bool[3, 3, 3] of frames uint32[1, 1]."""
        first, second = _unpack(frames[0, 0]), _unpack(frames[0, 0] >> 9)
        is_first = jnp.asarray(to_play) == 0
        colour = jnp.broadcast_to(is_first, (9,))
        planes = [jnp.where(is_first, first, second), jnp.where(is_first, second, first), colour]
        return jnp.stack(planes, axis=-1).reshape(3, 3, 3)

    def format_action(self, state: TicTacToeState, action: int) -> str:
        """Return the square as column letter and row number, a1 at the bottom left."""
        row, column = divmod(int(action), 3)
        return f"{'abc'[column]}{3 - row}"

    def ending(self, state: TicTacToeState) -> str:
        """Host side: return how a game that is over ended."""
        return (
            "three in a row" if bool(_has_line(jnp.asarray(state.boards)).any()) else "full board"
        )

    def format_board(self, state: TicTacToeState) -> str:
        """Return three lines of X (first mover), O and dots."""
        first, second = (int(word) for word in np.asarray(state.boards))
        marks = [
            "X" if first >> square & 1 else "O" if second >> square & 1 else "."
            for square in range(9)
        ]
        return "\n".join(" ".join(marks[3 * row : 3 * row + 3]) for row in range(3))


def _unpack(word: Array) -> Array:
    """Return bool[9] of the nine low bits."""
    return (word >> jnp.arange(9, dtype=jnp.uint32)) & 1 != 0


def _has_line(boards: Array) -> Array:
    """Return bool[2]: who has three in a row."""
    lines = jnp.array(_LINES, jnp.uint32)[None]
    return ((boards[:, None] & lines) == lines).any(axis=1)
