"""The rules of shogi, as AlphaZero plays it: fourfold repetition and the limit of 512 moves end the
game without a claim."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.config import check_range
from azero.games.batching import batch_native
from azero.games.compass import spread
from azero.games.history import NUM_FRAMES, Encoding, WithHistory, with_facts
from azero.games.shogi import encoding, entering, legal, moves, position, sfen, text
from azero.games.shogi.squares import ShogiSquares, ranks
from azero.types import Array

MAX_MOVES = 512
"""Longest game (AZ pseudocode: max_moves), counted in moves of either side."""
MOST_MOVES = 4096
"""Largest `max_moves` and `repetition_moves`: a state keeps four bytes for each of the latter."""
GAME_CODES = 192
"""Positions that the state of a game keeps by default: with them it takes 1,004 bytes without the
seven older frames."""
TREE_CODES = 64
"""Positions that the state of a search tree keeps."""
FOURFOLD = 4
"""Occurrences of a position that end the game."""
ENDINGS = (
    "",
    "checkmate",
    "no legal move",
    "perpetual check",
    "fourfold repetition",
    "entering king",
    "move limit",
)
"""How a game ended, by `ShogiState.ending`; if several apply, the first."""


@struct.dataclass
class ShogiState:
    """A position with its past."""

    frames: Array
    """uint32[8, 18]: the eight newest positions, newest first (see `position`); zeros before the
    start"""
    targets: Array
    """uint32[12, 3]: the legal moves as sets of squares (see `legal`), from the mover's side"""
    codes: Array
    """uint32[repetition_moves]: hashes of the last positions of the game, newest first; only the
    first 64 in a search tree"""
    checks: Array
    """int32[2]: the number of consecutive checks by the newest moves of Black, and of White"""
    num_moves: Array
    """int32[]: moves played since `init`"""
    ending: Array
    """int32[]: 0, or an index of ENDINGS"""
    result: Array
    """int32[]: 1 if Black has won, -1 if White has, else 0"""


class _Surveyed(struct.PyTreeNode):
    """A position after a move, its legal moves and hash; arrays [B, ...]."""

    frame: Array
    """uint32[B, 18], with no occurrences"""
    targets: Array
    code: Array
    in_check: Array
    """bool[B]"""
    can_move: Array
    """bool[B]"""
    has_entered: Array
    """bool[B]: the side to move satisfies the rule of the entering king"""


@dataclass(frozen=True)
class Shogi(WithHistory):
    """Shogi. The 11,259 actions are those of `moves`, the 362 planes those of `encoding`; player 0
    is Black (sente).

    Mate. The side without a legal move loses, in check or not.

    Repetition. A position that occurs for the fourth time, with the same side to move and the same
    pieces in hand, ends the game: a side loses if all its moves since the first occurrence gave
    check, else it is a draw. Positions are compared by 32-bit hashes (three false matches have a
    probability far below 1e-20) over the newest `repetition_moves` positions;
    `repetition_moves=max_moves` is the whole game, which takes 1.3 KB more for each state. In the
    slim state of a search tree only the newest 64 count. Positions before that of `sfen` do not
    count.

    Entering king. With `entering_king`, the side to move wins as soon as it could declare by the
    27-point rule (see `entering`); no action is needed for the declaration.

    A game of `max_moves` moves is a draw if nothing else ended it.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after this number of moves"""
    entering_king: bool = True
    """whether an entering king wins"""
    repetition_moves: int = GAME_CODES
    """number of moves within which a recurring position counts as a repetition"""
    sfen: str = sfen.START
    """start position of games, in SFEN"""
    history: int = NUM_FRAMES
    """positions in the planes"""

    name: ClassVar[str] = "shogi"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (9, 9)
    ENCODING: ClassVar[Encoding] = encoding
    TEXT: ClassVar[ModuleType] = text
    MOST_MOVES: ClassVar[int] = MOST_MOVES
    NOTATION: ClassVar[str] = "sfen"
    ENDINGS: ClassVar[tuple[str, ...]] = ENDINGS
    from_sfen = WithHistory._from_position
    frame_words: ClassVar[int] = position.FRAME_WORDS

    def __post_init__(self) -> None:
        """Check the options; see `WithHistory`."""
        check_range(self, "", "repetition_moves", 1, MOST_MOVES)
        super().__post_init__()

    @property
    def num_codes(self) -> int:
        """Positions that the state of a game keeps."""
        return min(self.repetition_moves, self.max_moves)

    def from_positions(self, lines: Sequence[str]) -> ShogiState:
        """See `WithHistory`; the notation is SFEN."""
        return _host_states(lines, self.num_codes, self.entering_king)

    def step(self, state: ShogiState, action: Array) -> ShogiState:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""
        is_over = self.is_terminal(state)
        new = _advance(state.frames[0], jnp.asarray(action, jnp.int32).astype(jnp.uint32))
        mover = self.to_play(state)
        num_moves = state.num_moves + 1
        is_mover = jnp.arange(2, dtype=jnp.int32) == mover
        checks = jnp.where(is_mover, jnp.where(new.in_check, state.checks + 1, 0), state.checks)
        occurrences, age = _recall(state.codes, new.code, num_moves)
        ending, result = _ending(
            self, new, 1 - mover, occurrences, checks >= (age + 1) // 2, num_moves
        )
        frame = with_facts(new.frame, occurrences.astype(jnp.uint32))
        played = ShogiState(
            frames=jnp.concatenate([frame[None], state.frames[:-1]]),
            targets=new.targets,
            codes=jnp.concatenate([new.code[None], state.codes[:-1]]),
            checks=checks,
            num_moves=num_moves,
            ending=ending,
            result=result,
        )
        return jax.tree.map(lambda old, fresh: jnp.where(is_over, old, fresh), state, played)

    def legal_action_mask(self, state: ShogiState) -> Array:
        """Return bool[11259]; all True once the game is over."""
        return _mask(state.frames[0], state.targets, self.is_terminal(state))

    def to_play(self, state: ShogiState) -> Array:
        """Return int32[]: 0 for Black, 1 for White."""
        return ((state.frames[0, -1] >> position.WHITE_BIT) & 1).astype(jnp.int32)

    def rewards(self, state: ShogiState) -> Array:
        """Return float32[2] for Black and White: +1 for the winner and -1 for the loser, else 0."""
        return jnp.stack([state.result, -state.result]).astype(jnp.float32)

    def search_state(self, state: ShogiState) -> ShogiState:
        """Return the state with the hashes of the newest 64 positions: 996 bytes. Repetitions of
        older positions are not detected."""
        return dataclasses.replace(state, codes=state.codes[:TREE_CODES])

    def format_action(self, state: ShogiState, action: int) -> str:
        """Return the move as in USI (7g7f, 8h2b+, P*5e). An action that would leave the board is
        named by square and direction."""
        return text.format_usi(text.board_of_state(state), int(action))


def _survey(frame: Sequence[Array]) -> tuple[legal.ShogiLegal, Array, Array]:
    """Return the legal moves of the position of a frame, its hash, and whether the mover's king has
    entered."""
    known = position.facts(frame[-1])
    seen = position.unpack(frame, known.white)
    rules = legal.legal(seen)
    return (
        rules,
        position.repetition_code(frame),
        entering.has_entered(seen, known.white) & ~rules.in_check,
    )


def _advance_batch(frame: Array, action: Array) -> _Surveyed:
    """Play moves uint32[B] on frames uint32[B, 18]; arrays inside are [B]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    new = _columns(position.play(columns, moves.decode(action)))
    rules, code, has_entered = _survey(list(new))
    targets = _columns([word for squares in rules.targets for word in squares])
    return _Surveyed(
        new.T,
        targets.T.reshape(-1, legal.NUM_TARGETS, 3),
        code,
        rules.in_check,
        rules.can_move,
        has_entered,
    )


def _columns(words: Sequence[Array]) -> Array:
    """Return uint32[N, B] of N arrays uint32[B], each of which is then computed once."""
    return jax.lax.optimization_barrier(jnp.stack(words))


def _mask_batch(frame: Array, targets: Array, is_over: Array) -> Array:
    """Return the legal moves bool[B, 11259] of frames uint32[B, 18] and their targets uint32[B, 12,
    3]."""
    columns = list(jax.lax.optimization_barrier(frame.T))
    words = list(jax.lax.optimization_barrier(targets.reshape(-1, 3 * legal.NUM_TARGETS).T))
    seen = position.unpack(columns, position.facts(columns[-1]).white)
    reached = [
        ShogiSquares(*words[3 * index : 3 * index + 3]) for index in range(legal.NUM_TARGETS)
    ]
    return moves.action_mask(
        moves.start_squares(seen, reached) | ranks(0).when(spread(is_over)[None])
    )


_advance = jax.jit(batch_native(_advance_batch))
_mask = jax.jit(batch_native(_mask_batch))


def _recall(past: Array, now: Array, num_moves: Array) -> tuple[Array, Array]:
    """Return how often the position with hash `now` has occurred, at most 4, and how many moves ago
    it first did, given hashes uint32[K] of the positions before it."""
    age = jnp.arange(1, past.shape[0] + 1, dtype=jnp.int32)
    same = (past == now) & (age <= num_moves) & (age % 2 == 0)
    return 1 + jnp.minimum(same.sum(dtype=jnp.int32), FOURFOLD - 1), jnp.where(same, age, 0).max()


def _ending(
    game: Shogi,
    new: _Surveyed,
    to_play: Array,
    occurrences: Array,
    only_checks: Array,
    num_moves: Array,
) -> tuple[Array, Array]:
    """Return the index of the first of ENDINGS that applies, or 0, and the result for Black.

    `only_checks` bool[2]: whether all moves of Black, and of White, since the first occurrence gave
    check.
    """
    sign = 1 - 2 * to_play
    is_fourth = occurrences >= FOURFOLD
    is_perpetual = is_fourth & (only_checks[0] != only_checks[1])
    conditions = [
        ~new.can_move & new.in_check,
        ~new.can_move,
        is_perpetual,
        is_fourth,
        new.has_entered & game.entering_king,
        num_moves >= game.max_moves,
    ]
    results = [
        -sign,
        -sign,
        jnp.where(only_checks[0], -1, 1),
        jnp.zeros_like(sign),
        sign,
        jnp.zeros_like(sign),
    ]
    ending, result = jnp.int32(0), jnp.zeros_like(sign)
    for index in range(len(conditions) - 1, -1, -1):
        ending = jnp.where(conditions[index], index + 1, ending).astype(jnp.int32)
        result = jnp.where(conditions[index], results[index], result).astype(jnp.int32)
    return ending, result


def _host_states(sfens: Sequence[str], num_codes: int, entering_king: bool) -> ShogiState:
    """Return the states that SFENs describe, as numpy arrays [P, ...]."""
    frame = sfen.parse_sfen(*sfens).frame
    rules, code, has_entered = _survey(frame)
    count = len(sfens)
    frames = np.zeros((count, NUM_FRAMES, position.FRAME_WORDS), np.uint32)
    frames[:, 0] = np.stack(frame, axis=1)
    signs = np.where(frames[:, 0, -1] >> position.WHITE_BIT & 1, -1, 1)
    frames[:, 0, -1] |= np.uint32(1)
    codes = np.zeros((count, num_codes), np.uint32)
    codes[:, 0] = code
    ending = np.where(
        ~rules.can_move, np.where(rules.in_check, 1, 2), np.where(has_entered & entering_king, 5, 0)
    ).astype(np.int32)
    return ShogiState(
        frames=frames,  # type: ignore[arg-type]
        targets=np.stack([np.stack(squares, axis=1) for squares in rules.targets], axis=1),  # type: ignore[arg-type]
        codes=codes,  # type: ignore[arg-type]
        checks=np.zeros((count, 2), np.int32),  # type: ignore[arg-type]
        num_moves=np.zeros(count, np.int32),  # type: ignore[arg-type]
        ending=ending,  # type: ignore[arg-type]
        result=np.where(ending == 0, 0, np.where(ending == 5, signs, -signs)).astype(np.int32),  # type: ignore[arg-type]
    )
