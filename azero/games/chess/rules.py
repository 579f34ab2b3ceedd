"""The rules of chess (FIDE), as AlphaZero plays it: threefold repetition, fifty moves and the limit
of 512 moves end the game without a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.batching import batch_native
from azero.games.chess import encoding, legal, moves, position, text
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
from azero.games.positions import join
from azero.types import Array

__all__ = ["ENDINGS", "MAX_MOVES", "Chess", "ChessState"]

MAX_MOVES = 512
"""Longest game (AZ pseudocode: max_moves), counted in moves of either side."""


@dataclass(frozen=True)
class Chess(ChessGame):
    """Chess. The 4,672 actions are those of `moves`, the 119 planes those of `encoding`; player 0
    is White.

    Repetition. A position that occurs for the third time, with the same side to move, castling
    rights and legal en-passant captures, ends the game as a draw. Positions are compared by 62-bit
    hashes over the whole game; in the slim state of a search tree by 31 of these bits, just as far
    back. Positions before that of `fen` do not count.

    Fifty moves without progress end the game unless the last of them mates; the rules of five
    occurrences and of seventy-five moves are therefore never needed. Insufficient material is king
    against king, with one knight or with bishops that are all on squares of one colour; play
    continues in other dead positions.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after this number of moves"""
    fen: str = text.START
    """start position of games, in Forsyth-Edwards notation"""
    history: int = NUM_FRAMES
    """positions in the planes"""

    name: ClassVar[str] = "chess"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (8, 8)
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
          ValueError: a line is not a position of chess; what is wrong is named.
        """
        return _host_states(lines)

    def step(self, state: ChessState, action: Array) -> ChessState:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""
        return after(
            state,
            _advance(
                state.frames[0], state.en_passant, jnp.asarray(action, jnp.int32).astype(jnp.uint32)
            ),
            self.max_moves,
        )

    def legal_action_mask(self, state: ChessState) -> Array:
        """Return bool[4672]; all True once the game is over."""
        return _mask(state.frames[0], state.targets, self.is_terminal(state))

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes float32[8, 8, C] of frames uint32[8, 9], newest first."""
        return encoding.planes_from_frames(frames[: self.history], to_play)

    def format_action(self, state: ChessState, action: int) -> str:
        """Return the move as in UCI (e2e4, e7e8q). An action that would leave the board is named by
        square and direction."""
        return text.format_uci(text.board_of_state(state), int(action))

    def format_board(self, state: ChessState) -> str:
        """Return the diagram from White's side and the FEN below it."""
        return text.format_diagram(text.board_of_state(state))


def _survey(
    seen: ChessPosition, plies: Array, clock: Array
) -> tuple[list[Array], Array, list[ChessSquares], list[Array], Array]:
    """Return frame words, en-passant file, targets, codes and verdict (see `verdict_of`) of a
    position whose en-passant file may be that of any double step."""
    known = legal.legal(seen)
    seen = seen._replace(en_passant=known.en_passant)
    black = position.is_black(plies)
    board = position.pack_board(seen, black)
    rights = position.rights_of_colours(seen, black)
    word = position.facts_word(ChessFacts(rights, plies & np.uint32(0), clock, plies))
    return (
        [*board, word],
        known.en_passant,
        known.targets,
        position.codes(seen, black, board),
        verdict_of(known, seen),
    )


def _advance_batch(frame: Array, en_passant: Array, action: Array) -> Surveyed:
    """Play moves uint32[B] on frames uint32[B, 9]; arrays inside are [B]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    before = position.facts(columns[-1])
    move = moves.decode(action)
    seen, is_progress = position.play(position.unpack(columns, en_passant), move)
    clock = jnp.where(is_progress, jnp.uint32(0), jnp.minimum(before.clock + 1, position.CLOCK_MAX))
    return joined(*_survey(seen, before.plies + 1, clock))


def _mask_batch(frame: Array, targets: Array, is_over: Array) -> Array:
    """Return the legal moves bool[B, 4672] of frames uint32[B, 9] and their targets uint32[B, 16,
    2]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    words = list(jax.lax.optimization_barrier(targets.reshape(-1, 2 * legal.NUM_TARGETS).T))
    seen = position.unpack(columns, jnp.zeros_like(columns[0]))
    reached = [
        ChessSquares(words[2 * index], words[2 * index + 1]) for index in range(legal.NUM_TARGETS)
    ]
    over = spread(is_over)
    everything = ChessSquares(over, over)
    return moves.action_mask([planes | everything for planes in moves.start_squares(seen, reached)])


_advance = jax.jit(batch_native(_advance_batch))
_mask = jax.jit(batch_native(_mask_batch))


def _host_states(fens: Sequence[str]) -> ChessState:
    """Return the states that FENs describe, as numpy arrays [P, ...]."""
    parsed = join([text.parse_fen(fen) for fen in fens])
    return states_of(*_survey(parsed.position, parsed.plies, parsed.clock), parsed.clock)
