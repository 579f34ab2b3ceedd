"""The rules of chess (FIDE), as AlphaZero plays it: threefold repetition and fifty moves end the game by themselves, and so do 512 moves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.games.batching import batch_native
from azero.games.chess import encoding, legal, moves, position, text
from azero.games.chess.position import Facts, Position
from azero.games.chess.squares import Squares
from azero.games.positions import join
from azero.games.symmetry import IdentityOnly
from azero.types import Array

MAX_MOVES = 512
"""Longest game (AZ pseudocode: max_moves), counted in moves of either side."""
CLOCK_LIMIT = 100
"""Moves of both sides without capture or pawn move that end the game (FIDE 9.3: fifty by each)."""
ENDINGS = ("", "checkmate", "stalemate", "insufficient material", "fifty moves", "threefold repetition", "move limit")
"""How a game ended, by `ChessState.ending`; of several reasons the first."""


@struct.dataclass
class ChessState:
    """A position with its past."""

    frames: Array
    """uint32[8, 9]: the eight newest positions, newest first (see `position`); zeros before the start"""
    en_passant: Array
    """uint32[]: one bit for the file of a double step that can legally be taken in passing, else zero"""
    targets: Array
    """uint32[16, 2]: the legal moves as reachable squares (see `legal`), from the mover's side"""
    codes: Array
    """uint32[2, 100]: what stands for the positions since the last capture or pawn move, by their no-progress count; only the first word in a search tree"""
    num_moves: Array
    """int32[]: moves played since `init`"""
    ending: Array
    """int32[]: 0, or a place in ENDINGS"""


class Surveyed(struct.PyTreeNode):
    """A position and what the rules say about it; arrays [B, ...]."""

    frame: Array
    """uint32[B, 9], with no occurrences"""
    en_passant: Array
    targets: Array
    codes: Array
    """uint32[B, 2]"""
    verdict: Array
    """int32[B]: the ending that the position alone makes, or 0"""


@dataclass(frozen=True)
class Chess(IdentityOnly):
    """Chess. The 4,672 actions are those of `moves`, the 119 planes those of `encoding`; player 0 is White.

    Repetition. A position that occurs a third time, with the same side to move, castling rights and legal captures in passing, ends the game as a draw. Positions
    are compared by 62-bit codes over the whole game; in the slim state of a search tree by 31 of these bits, as far back as well. Nothing before the position
    that `fen` describes counts.

    Fifty moves end the game unless the last of them mates. Five occurrences and seventy-five moves never come up. Insufficient material is a king against a king,
    with one knight or with bishops that stand on one colour of squares; other dead positions are played on.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after so many moves"""
    fen: str = text.START
    """where games begin, in Forsyth-Edwards notation"""

    name: ClassVar[str] = "chess"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (8, 8)
    num_planes: ClassVar[int] = encoding.NUM_PLANES
    num_frames: ClassVar[int] = encoding.NUM_FRAMES
    frame_words: ClassVar[int] = position.FRAME_WORDS

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
          ValueError: an option is out of range, or `fen` is not a position; it is quoted with what is allowed.
        """
        if not 1 <= self.max_moves <= text.MAX_FULL_MOVES:
            raise ValueError(f"max_moves {self.max_moves}: allowed are 1 to {text.MAX_FULL_MOVES}")
        text.parse_fen(self.fen)

    def init(self) -> ChessState:
        """Return the position that `fen` describes, by default the start of the game."""
        return self.from_fen(self.fen)

    def from_fen(self, fen: str) -> ChessState:
        """Return a game that begins with a position in Forsyth-Edwards notation. Host side.

        Raises:
          ValueError: it is not a position of chess; what is wrong is named.
        """
        return jax.tree.map(jnp.asarray, _host_state(fen))

    def from_positions(self, lines: Sequence[str]) -> ChessState:
        """Return games that begin with positions in Forsyth-Edwards notation, as numpy arrays [P, ...]. Host side.

        Raises:
          ValueError: a line is not a position of chess; what is wrong is named.
        """
        return _host_states(lines)

    def step(self, state: ChessState, action: Array) -> ChessState:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""
        return after(state, _advance(state.frames[0], state.en_passant, jnp.asarray(action, jnp.int32).astype(jnp.uint32)), self.max_moves)

    def legal_action_mask(self, state: ChessState) -> Array:
        """Return bool[4672]; all True once the game is over."""
        return _mask(state.frames[0], state.targets, self.is_terminal(state))

    def to_play(self, state: ChessState) -> Array:
        """Return int32[]: 0 for White, 1 for Black."""
        return mover(state)

    def is_terminal(self, state: ChessState) -> Array:
        """Return bool[]: the game is over."""
        return state.ending != 0

    def rewards(self, state: ChessState) -> Array:
        """Return float32[2] for White and Black: +1 and -1 after a mate, else 0."""
        return results(state)

    def observe(self, state: ChessState) -> Array:
        """Return the planes float32[8, 8, 119] (AZ, supplement, Table S1)."""
        return self.observe_frames(state.frames, self.to_play(state))

    def search_state(self, state: ChessState) -> ChessState:
        """Return the state with half of the codes: 828 bytes. Two different positions are taken for one with probability 2^-31."""
        return dataclasses.replace(state, codes=state.codes[:1])

    def pack_frame(self, state: ChessState) -> Array:
        """Return uint32[9]: men, castling rights, occurrences and counts of the newest position."""
        return state.frames[0]

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes float32[8, 8, 119] of eight frames uint32[8, 9], newest first."""
        return encoding.planes_from_frames(frames, to_play)

    def format_action(self, state: ChessState, action: int) -> str:
        """Return the move as in UCI (e2e4, e7e8q). An action that would leave the board is named by square and direction."""
        return text.format_uci(text.board_of_state(state), int(action))

    def format_board(self, state: ChessState) -> str:
        """Return the diagram from White's side and the FEN below it."""
        return text.format_diagram(text.board_of_state(state))


def mover(state: ChessState) -> Array:
    """Return int32[]: 0 where White is to move, 1 where Black is."""
    return (position.facts(state.frames[0, -1]).plies & 1).astype(jnp.int32)


def results(state: ChessState) -> Array:
    """Return float32[2] for White and Black: +1 and -1 after a mate, else 0."""
    signs = jnp.where(jnp.arange(2, dtype=jnp.int32) == 1 - mover(state), jnp.float32(1.0), jnp.float32(-1.0))
    return jnp.where(state.ending == ENDINGS.index("checkmate"), signs, jnp.float32(0.0))


def after(state: ChessState, new: Surveyed, max_moves: int) -> ChessState:
    """Return the state after a move that leads to the position `new` (without a batch axis); a finished game stays as it is."""
    is_over = state.ending != 0
    clock = position.facts(new.frame[-1]).clock.astype(jnp.int32)
    occurrences, codes = _remember(state.codes, new.codes, clock)
    num_moves = state.num_moves + 1
    played = ChessState(
        frames=jnp.concatenate([_with_occurrences(new.frame, occurrences)[None], state.frames[:-1]]),
        en_passant=new.en_passant,
        targets=new.targets,
        codes=codes,
        num_moves=num_moves,
        ending=_ending(new.verdict, clock, occurrences, num_moves >= max_moves),
    )
    return jax.tree.map(lambda old, fresh: jnp.where(is_over, old, fresh), state, played)


def _survey(seen: Position, plies: Array, clock: Array) -> tuple[list[Array], Array, list[Squares], list[Array], Array]:
    """Return frame words, en-passant file, targets, codes and verdict of a position whose en-passant file may be that of any double step."""
    known = legal.legal(seen)
    seen = seen._replace(en_passant=known.en_passant)
    black = position.is_black(plies)
    board = position.pack_board(seen, black)
    rights = position.rights_of_colours(seen, black)
    word = position.facts_word(Facts(rights, plies & np.uint32(0), clock, plies))
    return [*board, word], known.en_passant, known.targets, position.codes(seen, black, board), verdict_of(known, seen)


def verdict_of(known: legal.Legal, seen: Position) -> Array:
    """Return int32: the ending in ENDINGS that a position alone makes, or 0."""
    stuck, check, dead = (condition.astype(np.int32) for condition in (~known.can_move, known.in_check, position.is_dead(seen)))
    return stuck * (np.int32(2) - check) + (np.int32(1) - stuck) * dead * np.int32(3)


def _advance_batch(frame: Array, en_passant: Array, action: Array) -> Surveyed:
    """Play moves uint32[B] on frames uint32[B, 9]; arrays inside are [B]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    before = position.facts(columns[-1])
    move = moves.decode(action)
    seen, is_progress = position.play(position.unpack(columns, en_passant), move)
    clock = jnp.where(is_progress, jnp.uint32(0), jnp.minimum(before.clock + 1, position.CLOCK_MAX))
    return joined(*_survey(seen, before.plies + 1, clock))


def joined(words: list[Array], passing: Array, targets: list[Squares], codes: list[Array], verdict: Array) -> Surveyed:
    """Return what is known of a batch of positions, arrays [B], as arrays [B, ...]."""
    parts = [*words, passing, *codes, verdict.astype(jnp.uint32), *(word for squares in targets for word in squares)]
    # One joint of all parts keeps the work apart from what is done with them (see `squares.settle`).
    together = jax.lax.optimization_barrier(jnp.stack(parts)).T
    return Surveyed(
        frame=together[:, :9],
        en_passant=together[:, 9],
        codes=together[:, 10:12],
        verdict=together[:, 12].astype(jnp.int32),
        targets=together[:, 13:].reshape(-1, legal.NUM_TARGETS, 2),
    )


def _mask_batch(frame: Array, targets: Array, is_over: Array) -> Array:
    """Return the legal moves bool[B, 4672] of frames uint32[B, 9] and their targets uint32[B, 16, 2]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    words = list(jax.lax.optimization_barrier(targets.reshape(-1, 2 * legal.NUM_TARGETS).T))
    seen = position.unpack(columns, jnp.zeros_like(columns[0]))
    reached = [Squares(words[2 * index], words[2 * index + 1]) for index in range(legal.NUM_TARGETS)]
    over = position.spread(is_over)
    everything = Squares(over, over)
    return moves.action_mask([planes | everything for planes in moves.start_squares(seen, reached)])


_advance = jax.jit(batch_native(_advance_batch))
_mask = jax.jit(batch_native(_mask_batch))


def _remember(past: Array, now: Array, clock: Array) -> tuple[Array, Array]:
    """Return how often the position has occurred, at most 3, and the codes uint32[K, 100] with it at place `clock`."""
    place = jnp.arange(past.shape[1], dtype=jnp.int32)
    now = now[: past.shape[0], None]
    same = (past == now).all(axis=0) & (place < clock) & ((clock - place) % 2 == 0)
    occurrences = 1 + jnp.minimum(same.sum(dtype=jnp.int32), 2)
    return occurrences, jnp.where(place == clock, now, past)


def _with_occurrences(frame: Array, occurrences: Array) -> Array:
    """Return the frame uint32[9] with its occurrences int32[] filled in."""
    bits = occurrences.astype(jnp.uint32) << position.OCCURRENCES_BIT
    return jnp.where(jnp.arange(position.FRAME_WORDS, dtype=jnp.int32) == position.FRAME_WORDS - 1, frame | bits, frame)


def _ending(verdict: Array, clock: Array, occurrences: Array, is_long: Array) -> Array:
    """Return the first of the reasons in ENDINGS, or 0."""
    late = jnp.where(clock >= CLOCK_LIMIT, 4, jnp.where(occurrences >= 3, 5, jnp.where(is_long, 6, 0)))
    return jnp.where(verdict > 0, verdict, late).astype(jnp.int32)


@functools.cache
def _host_state(fen: str) -> ChessState:
    """Return the state that a FEN describes, as numpy arrays."""
    return jax.tree.map(lambda leaf: leaf[0], _host_states([fen]))


def _host_states(fens: Sequence[str]) -> ChessState:
    """Return the states that FENs describe, as numpy arrays [P, ...]."""
    parsed = join([text.parse_fen(fen) for fen in fens])
    return states_of(*_survey(parsed.position, parsed.plies, parsed.clock), parsed.clock)


def states_of(words: list[Array], passing: Array, targets: list[Squares], codes: list[Array], verdict: Array, clock: Array) -> ChessState:
    """Return the states of games that begin with the positions of which this is known, numpy words [P], as numpy arrays [P, ...]."""
    count = len(clock)
    frames = np.zeros((count, encoding.NUM_FRAMES, position.FRAME_WORDS), np.uint32)
    frames[:, 0] = np.stack(words, axis=1)
    frames[:, 0, -1] |= np.uint32(1 << position.OCCURRENCES_BIT)
    history = np.zeros((count, 2, CLOCK_LIMIT), np.uint32)
    early = np.flatnonzero(np.asarray(clock) < CLOCK_LIMIT)
    history[early, :, np.asarray(clock)[early]] = np.stack(codes, axis=1)[early]
    return ChessState(
        frames=frames,  # type: ignore[arg-type]
        en_passant=passing,
        targets=np.stack([np.stack(squares, axis=1) for squares in targets], axis=1),  # type: ignore[arg-type]
        codes=history,  # type: ignore[arg-type]
        num_moves=np.zeros(count, np.int32),  # type: ignore[arg-type]
        ending=np.where((verdict == 0) & (clock >= CLOCK_LIMIT), 4, verdict).astype(np.int32),  # type: ignore[arg-type]
    )
