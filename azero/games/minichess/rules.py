"""The rules of Gardner's 5x5 minichess (Gardner, Scientific American, 1969; Mhalla and Prost,
'Gardner's Minichess Variant is Solved', 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
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
    joined,
    mask_batch,
    verdict_of,
)
from azero.games.history import NUM_FRAMES, Encoding
from azero.games.minichess import board, encoding, moves, text
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
    ENCODING: ClassVar[Encoding] = encoding
    TEXT: ClassVar[ModuleType] = text
    frame_words: ClassVar[int] = position.FRAME_WORDS

    @staticmethod
    def survey(
        seen: ChessPosition, plies: Array, clock: Array
    ) -> tuple[list[Array], Array, list[ChessSquares], list[Array], Array]:
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


def _advance_batch(frame: Array, action: Array) -> Surveyed:
    """Play moves uint32[B] on frames uint32[B, 9]; arrays inside are [B]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    before = position.facts(columns[-1])
    seen, is_progress = board.play(board.unpack(columns), moves.decode(action))
    clock = jnp.where(is_progress, jnp.uint32(0), jnp.minimum(before.clock + 1, position.CLOCK_MAX))
    return joined(*Minichess.survey(seen, before.plies + 1, clock))


_advance = jax.jit(batch_native(_advance_batch))
_mask = jax.jit(batch_native(mask_batch, board.unpack, moves))
