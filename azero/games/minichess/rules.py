"""The rules of Gardner's 5x5 minichess (Gardner, Scientific American, 1969; Mhalla and Prost,
'Gardner's Minichess Variant is Solved', 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.batching import batch_native
from azero.games.chess import legal, position
from azero.games.chess.position import ChessFacts, ChessPosition
from azero.games.chess.squares import ChessSquares
from azero.games.chess.state import (
    ENDINGS,
    ChessGame,
    ChessState,
    Surveyed,
    after,
    check_max_moves,
    joined,
    states_of,
    verdict_of,
)
from azero.games.compass import spread
from azero.games.history import NUM_FRAMES, check_history
from azero.games.minichess import board, encoding, moves, text
from azero.games.positions import join
from azero.types import Array

__all__ = ["ENDINGS", "ChessState", "Minichess"]

MAX_MOVES = 256
"""Longest game, counted in moves of either side (Pgx, gardner_chess: MAX_TERMINATION_STEPS)."""


@dataclass(frozen=True)
class Minichess(ChessGame):
    """Chess on five ranks and files without castling, double steps and en passant; player 0 is
    White.

    The 1,225 actions are those of `moves`, the 115 planes those of `encoding`. Everything else is
    as in `azero.games.chess.rules`: promotion to queen, rook, bishop or knight, mate, stalemate,
    threefold repetition, fifty moves of each side without progress, and insufficient material. The
    state is that of chess, with the board as in `board`.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after this number of moves"""
    fen: str = text.START
    """start position of games, in Forsyth-Edwards notation with five ranks"""
    history: int = NUM_FRAMES
    """positions in the planes"""

    name: ClassVar[str] = "minichess"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (board.SIZE, board.SIZE)
    PLANES: ClassVar[tuple[int, int]] = (encoding.PLANES_PER_FRAME, encoding.ENDS)
    frame_words: ClassVar[int] = position.FRAME_WORDS

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
          ValueError: an option is out of range, or `fen` is not a position; it is quoted with what
            is allowed.
        """
        check_max_moves(self.max_moves)
        check_history(self.history)
        text.parse_fen(self.fen)

    def from_positions(self, lines: Sequence[str]) -> ChessState:
        """Return games that start from positions in Forsyth-Edwards notation, as numpy arrays [P,
        ...]. Host side.

        Raises:
          ValueError: a line is not a position of minichess; what is wrong is named.
        """
        return _host_states(lines)

    def step(self, state: ChessState, action: Array) -> ChessState:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""
        return after(
            state,
            _advance(state.frames[0], jnp.asarray(action, jnp.int32).astype(jnp.uint32)),
            self.max_moves,
        )

    def legal_action_mask(self, state: ChessState) -> Array:
        """Return bool[1225]; all True once the game is over."""
        return _mask(state.frames[0], state.targets, self.is_terminal(state))

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes float32[5, 5, C] of frames uint32[8, 9], newest first."""
        return encoding.planes_from_frames(frames[: self.history], to_play)

    def format_action(self, state: ChessState, action: int) -> str:
        """Return the move as in UCI (b1c3, a4a5q). An action that would leave the board is named by
        square and direction."""
        return text.format_uci(text.board_of_state(state), int(action))

    def format_board(self, state: ChessState) -> str:
        """Return the diagram from White's side and the FEN below it."""
        return text.format_diagram(text.board_of_state(state))


def _survey(
    seen: ChessPosition, plies: Array, clock: Array
) -> tuple[list[Array], Array, list[ChessSquares], list[Array], Array]:
    """Return frame words, en-passant file (none), targets, codes and verdict of a position, as
    `joined` takes them."""
    known = legal.legal(board.block_unused_squares(seen))
    black = position.is_black(plies)
    nothing = plies & np.uint32(0)
    words = board.pack_board(seen, black)
    frame = [*words, position.facts_word(ChessFacts(nothing, nothing, clock, plies))]
    return (
        frame,
        nothing,
        known.targets,
        position.codes(seen, black, words),
        verdict_of(known, seen),
    )


def _advance_batch(frame: Array, action: Array) -> Surveyed:
    """Play moves uint32[B] on frames uint32[B, 9]; arrays inside are [B]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    before = position.facts(columns[-1])
    seen, is_progress = board.play(board.unpack(columns), moves.decode(action))
    clock = jnp.where(is_progress, jnp.uint32(0), jnp.minimum(before.clock + 1, position.CLOCK_MAX))
    return joined(*_survey(seen, before.plies + 1, clock))


def _mask_batch(frame: Array, targets: Array, is_over: Array) -> Array:
    """Return the legal moves bool[B, 1225] of frames uint32[B, 9] and their targets uint32[B, 16,
    2]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    words = list(jax.lax.optimization_barrier(targets.reshape(-1, 2 * legal.NUM_TARGETS).T))
    reached = [
        ChessSquares(words[2 * index], words[2 * index + 1]) for index in range(legal.NUM_TARGETS)
    ]
    over = spread(is_over)
    return moves.action_mask(
        [
            planes | ChessSquares(over, over)
            for planes in moves.start_squares(board.unpack(columns), reached)
        ]
    )


_advance = jax.jit(batch_native(_advance_batch))
_mask = jax.jit(batch_native(_mask_batch))


def _host_states(fens: Sequence[str]) -> ChessState:
    """Return the states that FENs describe, as numpy arrays [P, ...]."""
    parsed = join([text.parse_fen(fen) for fen in fens])
    return states_of(*_survey(parsed.position, parsed.plies, parsed.clock), parsed.clock)
