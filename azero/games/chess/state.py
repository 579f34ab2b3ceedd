"""What chess and minichess share: the state, its counts and endings, and the methods of a game that
need only these."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.games.batching import batch_native
from azero.games.chess import legal, position
from azero.games.chess.fen import MAX_FULL_MOVES
from azero.games.chess.position import ChessPosition
from azero.games.chess.squares import ChessSquares
from azero.games.compass import spread
from azero.games.history import NUM_FRAMES, WithHistory, with_facts
from azero.games.positions import join
from azero.types import Array

CLOCK_LIMIT = 100
"""Moves of both sides without capture or pawn move that end the game (FIDE 9.3: fifty by each)."""
ENDINGS = (
    "",
    "checkmate",
    "stalemate",
    "insufficient material",
    "fifty moves",
    "threefold repetition",
    "move limit",
)
"""How a game ended, by `ChessState.ending`; if several apply, the first."""


@struct.dataclass
class ChessState:
    """A position with its past."""

    frames: Array
    """uint32[8, 9]: the eight newest positions, newest first (see `position`); zeros before the
    start"""
    en_passant: Array
    """uint32[]: one bit for the file of a pawn that can legally be captured en passant, else
    zero"""
    targets: Array
    """uint32[16, 2]: the legal moves as reachable squares (see `legal`), from the mover's side"""
    codes: Array
    """uint32[2, 100]: keys of the positions since the last capture or pawn move, by their
    no-progress count; only the first word in a search tree"""
    num_moves: Array
    """int32[]: moves played since `init`"""
    ending: Array
    """int32[]: 0, or an index of ENDINGS"""


class Surveyed(struct.PyTreeNode):
    """A position after a move, its legal moves and hashes; arrays [B, ...]."""

    frame: Array
    """uint32[B, 9], with no occurrences"""
    en_passant: Array
    targets: Array
    codes: Array
    """uint32[B, 2]"""
    verdict: Array
    """int32[B]: an ending that depends on the position alone, or 0"""


class ChessGame(WithHistory):
    """The part of the Game contract that chess and minichess share; player 0 is White."""

    MOST_MOVES: ClassVar[int] = MAX_FULL_MOVES
    NOTATION: ClassVar[str] = "fen"
    ENDINGS: ClassVar[tuple[str, ...]] = ENDINGS
    from_fen = WithHistory._from_position
    REVERSED_AXES: ClassVar[tuple[int, ...]] = (0,)
    BOARD: ClassVar[ModuleType]
    """Has `unpack(frame, en_passant)` and `play(position, move)` (see `position`)."""
    MOVES: ClassVar[ModuleType]
    frame_words: ClassVar[int] = position.FRAME_WORDS

    @staticmethod
    @abc.abstractmethod
    def survey(
        seen: ChessPosition, plies: Array, clock: Array
    ) -> tuple[list[Array], Array, list[ChessSquares], list[Array], Array]:
        """Return frame words, en-passant file, targets, codes and verdict (see `verdict_of`) of
        positions whose en-passant file may be that of any double step; arrays [B]."""

    def from_positions(self, lines: Sequence[str]) -> ChessState:
        """See `WithHistory`; the notation is Forsyth-Edwards."""
        parsed = join([self.TEXT.parse_fen(fen) for fen in lines])
        surveyed = self.survey(parsed.position, parsed.plies, parsed.clock)
        return _states_of(*surveyed, parsed.clock)

    def step(self, state: ChessState, action: Array) -> ChessState:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""
        advance, _ = _compiled(type(self))
        code = jnp.asarray(action, jnp.int32).astype(jnp.uint32)
        return _after(state, advance(state.frames[0], state.en_passant, code), self.max_moves)

    def legal_action_mask(self, state: ChessState) -> Array:
        """Return bool[A]; all True once the game is over."""
        _, mask = _compiled(type(self))
        return mask(state.frames[0], state.targets, self.is_terminal(state))

    def to_play(self, state: ChessState) -> Array:
        """Return int32[]: 0 for White, 1 for Black."""
        return (position.facts(state.frames[0, -1]).plies & 1).astype(jnp.int32)

    def rewards(self, state: ChessState) -> Array:
        """Return float32[2] for White and Black: +1 and -1 after a mate, else 0."""
        signs = jnp.where(
            jnp.arange(2, dtype=jnp.int32) == 1 - self.to_play(state),
            jnp.float32(1.0),
            jnp.float32(-1.0),
        )
        return jnp.where(state.ending == ENDINGS.index("checkmate"), signs, jnp.float32(0.0))

    def format_action(self, state: ChessState, action: int) -> str:
        """Return the move as in UCI (e2e4, a7a8q). An action that would leave the board is named by
        square and direction."""
        return self.TEXT.format_uci(self.TEXT.board_of_state(state), int(action))

    def search_state(self, state: ChessState) -> ChessState:
        """Return the state with half of the codes: 828 bytes. Two different positions have the same
        code with probability 2^-31."""
        return dataclasses.replace(state, codes=state.codes[:1])


@functools.cache
def _compiled(game: type[ChessGame]) -> tuple[Callable[..., Surveyed], Callable[..., Array]]:
    """Return the position after a move, and the legal moves, of one state."""
    return (jax.jit(batch_native(_advance_batch, game)), jax.jit(batch_native(_mask_batch, game)))


def _advance_batch(
    game: type[ChessGame], frame: Array, en_passant: Array, action: Array
) -> Surveyed:
    """Play moves uint32[B] on frames uint32[B, 9]; arrays inside are [B]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    before = position.facts(columns[-1])
    move = game.MOVES.decode(action)
    seen, is_progress = game.BOARD.play(game.BOARD.unpack(columns, en_passant), move)
    clock = jnp.where(is_progress, jnp.uint32(0), jnp.minimum(before.clock + 1, position.CLOCK_MAX))
    return _joined(*game.survey(seen, before.plies + 1, clock))


def _after(state: ChessState, new: Surveyed, max_moves: int) -> ChessState:
    """Return the state after a move that leads to the position `new` (without a batch axis); a
    finished game stays as it is."""
    is_over = state.ending != 0
    clock = position.facts(new.frame[-1]).clock.astype(jnp.int32)
    occurrences, codes = _remember(state.codes, new.codes, clock)
    num_moves = state.num_moves + 1
    frame = with_facts(new.frame, occurrences.astype(jnp.uint32) << position.OCCURRENCES_BIT)
    played = ChessState(
        frames=jnp.concatenate([frame[None], state.frames[:-1]]),
        en_passant=new.en_passant,
        targets=new.targets,
        codes=codes,
        num_moves=num_moves,
        ending=_ending(new.verdict, clock, occurrences, num_moves >= max_moves),
    )
    return jax.tree.map(lambda old, fresh: jnp.where(is_over, old, fresh), state, played)


def verdict_of(known: legal.ChessLegal, seen: ChessPosition) -> Array:
    """Return int32: the index in ENDINGS of an ending that depends on the position alone, or 0."""
    stuck, check, dead = (
        condition.astype(np.int32)
        for condition in (~known.can_move, known.in_check, position.has_insufficient_material(seen))
    )
    return stuck * (np.int32(2) - check) + (np.int32(1) - stuck) * dead * np.int32(3)


def _joined(
    words: list[Array],
    en_passant: Array,
    targets: list[ChessSquares],
    codes: list[Array],
    verdict: Array,
) -> Surveyed:
    """Return the data of a batch of positions, arrays [B], stacked into arrays [B, ...]."""
    parts = [
        *words,
        en_passant,
        *codes,
        verdict.astype(jnp.uint32),
        *(word for squares in targets for word in squares),
    ]
    # One stack of all parts keeps their computation apart from their uses (see
    # `compass.compute_once`).
    together = jax.lax.optimization_barrier(jnp.stack(parts)).T
    return Surveyed(
        frame=together[:, :9],
        en_passant=together[:, 9],
        codes=together[:, 10:12],
        verdict=together[:, 12].astype(jnp.int32),
        targets=together[:, 13:].reshape(-1, legal.NUM_TARGETS, 2),
    )


def _mask_batch(game: type[ChessGame], frame: Array, targets: Array, is_over: Array) -> Array:
    """Return the legal moves bool[B, A] of frames uint32[B, 9] and their targets uint32[B, 16,
    2]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    words = list(jax.lax.optimization_barrier(targets.reshape(-1, 2 * legal.NUM_TARGETS).T))
    reached = [
        ChessSquares(words[2 * index], words[2 * index + 1]) for index in range(legal.NUM_TARGETS)
    ]
    over = spread(is_over)
    everything = ChessSquares(over, over)
    seen = game.BOARD.unpack(columns, jnp.zeros_like(columns[0]))
    starts = game.MOVES.start_squares(seen, reached)
    return game.MOVES.action_mask([squares | everything for squares in starts])


def _remember(past: Array, now: Array, clock: Array) -> tuple[Array, Array]:
    """Return how often the position has occurred, at most 3, and the codes uint32[K, 100] with it
    at index `clock`."""
    place = jnp.arange(past.shape[1], dtype=jnp.int32)
    now = now[: past.shape[0], None]
    same = (past == now).all(axis=0) & (place < clock) & ((clock - place) % 2 == 0)
    occurrences = 1 + jnp.minimum(same.sum(dtype=jnp.int32), 2)
    return occurrences, jnp.where(place == clock, now, past)


def _ending(verdict: Array, clock: Array, occurrences: Array, is_long: Array) -> Array:
    """Return the index of the first of ENDINGS that applies, or 0."""
    late = jnp.where(
        clock >= CLOCK_LIMIT, 4, jnp.where(occurrences >= 3, 5, jnp.where(is_long, 6, 0))
    )
    return jnp.where(verdict > 0, verdict, late).astype(jnp.int32)


def _states_of(
    words: list[Array],
    en_passant: Array,
    targets: list[ChessSquares],
    codes: list[Array],
    verdict: Array,
    clock: Array,
) -> ChessState:
    """Return the states of games that start from the positions with these data, numpy words [P], as
    numpy arrays [P, ...]."""
    count = len(clock)
    frames = np.zeros((count, NUM_FRAMES, position.FRAME_WORDS), np.uint32)
    frames[:, 0] = np.stack(words, axis=1)
    frames[:, 0, -1] |= np.uint32(1 << position.OCCURRENCES_BIT)
    history = np.zeros((count, 2, CLOCK_LIMIT), np.uint32)
    early = np.flatnonzero(np.asarray(clock) < CLOCK_LIMIT)
    history[early, :, np.asarray(clock)[early]] = np.stack(codes, axis=1)[early]
    return ChessState(
        frames=frames,  # type: ignore[arg-type]
        en_passant=en_passant,
        targets=np.stack([np.stack(squares, axis=1) for squares in targets], axis=1),  # type: ignore[arg-type]
        codes=history,  # type: ignore[arg-type]
        num_moves=np.zeros(count, np.int32),  # type: ignore[arg-type]
        ending=np.where((verdict == 0) & (clock >= CLOCK_LIMIT), 4, verdict).astype(np.int32),  # type: ignore[arg-type]
    )
