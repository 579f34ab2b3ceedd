"""The rules of animal shogi (dobutsu shogi; Kitao and Fujita 2008; rules as in Tanaka, 'An Analysis
of a Board Game "Doubutsu Shogi"', 2009)."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.games.animal_shogi import encoding, legal, moves, position, text
from azero.games.animal_shogi.squares import BOARD, FILES, RANKS
from azero.games.compass import spread
from azero.games.history import NUM_FRAMES, Encoding, WithHistory
from azero.games.positions import join
from azero.types import Array

MAX_MOVES = 256
"""Longest game, counted in moves of either side (Pgx, animal_shogi: MAX_TERMINATION_STEPS)."""
TREE_KEYS = 32
"""Positions that the state of a search tree keeps."""
THREEFOLD = 3
"""Occurrences of a position that end the game."""
ENDINGS = ("", "catch", "no safe move", "try", "threefold repetition", "move limit")
"""How a game ended, by `AnimalShogiState.ending`; if several apply, a try, else the first."""


@struct.dataclass
class AnimalShogiState:
    """A position with its past."""

    frames: Array
    """uint32[8, 3]: the eight newest positions, newest first (see `position`); zeros before the
    start"""
    targets: Array
    """uint32[9]: the legal moves as sets of squares (see `legal`), from the mover's side"""
    keys: Array
    """uint32[2, max_moves]: the positions of the game (see `position.key`), newest first; only the
    first 32 in a search tree"""
    num_moves: Array
    """int32[]: moves played since `init`"""
    ending: Array
    """int32[]: 0, or an index of ENDINGS"""


@dataclass(frozen=True)
class AnimalShogi(WithHistory):
    """Animal shogi on three files and four ranks. The 132 actions are those of `moves`, the 146
    planes those of `encoding`; player 0 moves first.

    Catch. Capturing the lion wins. A move that leaves the mover's lion in check is not legal, so
    the game ends one move earlier: the side without a legal move, in check ("catch") or not ("no
    safe move"), loses, because every move would lose the lion.

    Try. A lion that moves to the far rank wins if it cannot be captured there; otherwise that move
    is illegal, like any other into check.

    Pieces. A chick that moves to the far rank always becomes a hen; a captured hen becomes a chick
    in hand. Pieces may be dropped on any empty square: two chicks on a file, a chick on the far
    rank (which stays a chick and cannot move) and mate by a dropped chick are allowed.

    A position that occurs for the third time, with the same pieces in hand and the same side to
    move, is a draw, perpetual check or not; in the slim state of a search tree only the newest 32
    positions count. Positions before that of `sfen` do not count. A game of `max_moves` moves is a
    draw if nothing else ended it.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after this number of moves"""
    sfen: str = text.START
    """start position of games, in SFEN with four ranks"""
    history: int = NUM_FRAMES
    """positions in the planes"""

    name: ClassVar[str] = "animal_shogi"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (RANKS, FILES)
    ENCODING: ClassVar[Encoding] = encoding
    TEXT: ClassVar[ModuleType] = text
    MOST_MOVES: ClassVar[int] = 4096
    """A state keeps eight bytes for each move."""
    NOTATION: ClassVar[str] = "sfen"
    ENDINGS: ClassVar[tuple[str, ...]] = ENDINGS
    from_sfen = WithHistory._from_position
    frame_words: ClassVar[int] = position.FRAME_WORDS

    def from_positions(self, lines: Sequence[str]) -> AnimalShogiState:
        """See `WithHistory`; the notation is SFEN with four ranks."""
        return _host_states(lines, self.max_moves)

    def step(self, state: AnimalShogiState, action: Array) -> AnimalShogiState:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""
        is_over = self.is_terminal(state)
        before = _seen(state)
        seen = position.play(
            before, moves.decode(jnp.asarray(action, jnp.int32).astype(jnp.uint32))
        )
        frame = position.pack(seen, position.plies(state.frames[0, 2]) + 1)
        key = jnp.stack(position.key(frame))
        num_moves = state.num_moves + 1
        age = jnp.arange(1, state.keys.shape[1] + 1, dtype=jnp.int32)
        same = (state.keys == key[:, None]).all(axis=0) & (age <= num_moves)
        times = 1 + jnp.minimum(same.sum(dtype=jnp.int32), THREEFOLD - 1)
        frame[2] = frame[2] | times.astype(jnp.uint32) << position.OCCURRENCES_BIT
        known = legal.legal(seen)
        drawn = jnp.where(
            times >= THREEFOLD, 4, jnp.where(num_moves >= self.max_moves, 5, 0)
        ).astype(jnp.int32)
        verdict = _verdict(known, seen)
        played = AnimalShogiState(
            frames=jnp.concatenate([jnp.stack(frame)[None], state.frames[:-1]]),
            targets=jnp.stack(known.targets),
            keys=jnp.concatenate([key[:, None], state.keys[:, :-1]], axis=1),
            num_moves=num_moves,
            ending=jnp.where(verdict != 0, verdict, drawn),
        )
        return jax.tree.map(lambda old, fresh: jnp.where(is_over, old, fresh), state, played)

    def legal_action_mask(self, state: AnimalShogiState) -> Array:
        """Return bool[132]; all True once the game is over."""
        starts = moves.start_squares(
            _seen(state), [state.targets[index] for index in range(legal.NUM_TARGETS)]
        )
        everything = spread(self.is_terminal(state)) & BOARD
        return moves.action_mask([squares | everything for squares in starts])

    def to_play(self, state: AnimalShogiState) -> Array:
        """Return int32[]: 0 for the first player, 1 for the second."""
        return (position.plies(state.frames[0, 2]) & 1).astype(jnp.int32)

    def rewards(self, state: AnimalShogiState) -> Array:
        """Return float32[2] for the first and the second player: +1 for the winner and -1 for the
        loser, else 0."""
        signs = jnp.where(
            jnp.arange(2, dtype=jnp.int32) == self.to_play(state),
            jnp.float32(-1.0),
            jnp.float32(1.0),
        )
        is_won = (state.ending > 0) & (state.ending <= ENDINGS.index("try"))
        return jnp.where(is_won, signs, jnp.float32(0.0))

    def search_state(self, state: AnimalShogiState) -> AnimalShogiState:
        """Return the state with the newest 32 positions: 396 bytes. Repetitions of older positions
        are not detected."""
        return dataclasses.replace(state, keys=state.keys[:, :TREE_KEYS])

    def format_action(self, state: AnimalShogiState, action: int) -> str:
        """Return the move: b2b3, a3a4+, C@b2. An action that would leave the board is named by
        square and direction."""
        return text.format_move(text.board_of_state(state), int(action))


def _seen(state: AnimalShogiState) -> position.AnimalShogiPosition:
    """Return the newest position as its mover sees it."""
    frame = [state.frames[0, index] for index in range(position.FRAME_WORDS)]
    return position.unpack(frame, position.is_second(frame[2]))


def _verdict(known: legal.AnimalShogiLegal, seen: position.AnimalShogiPosition) -> Array:
    """Return int32: the index in ENDINGS of an ending that depends on the position alone, or 0; the
    side to move has then lost."""
    stuck, check, tried = (
        condition.astype(np.int32)
        for condition in (~known.can_move, known.in_check, legal.wins_by_trying(seen))
    )
    return tried * np.int32(3) + (np.int32(1) - tried) * stuck * (np.int32(2) - check)


def _host_states(sfens: Sequence[str], max_moves: int) -> AnimalShogiState:
    """Return the states that SFENs describe, as numpy arrays [P, ...]."""
    parsed = join([text.parse_sfen(sfen) for sfen in sfens])
    known = legal.legal(parsed.position)
    frame = position.pack(parsed.position, parsed.plies)
    count = len(sfens)
    frames = np.zeros((count, NUM_FRAMES, position.FRAME_WORDS), np.uint32)
    frames[:, 0] = np.stack(frame, axis=1)
    frames[:, 0, 2] |= np.uint32(1 << position.OCCURRENCES_BIT)
    keys = np.zeros((count, 2, max_moves), np.uint32)
    keys[:, :, 0] = np.stack(position.key(frame), axis=1)
    return AnimalShogiState(
        frames=frames,  # type: ignore[arg-type]
        targets=np.stack(known.targets, axis=1),  # type: ignore[arg-type]
        keys=keys,  # type: ignore[arg-type]
        num_moves=np.zeros(count, np.int32),  # type: ignore[arg-type]
        ending=_verdict(known, parsed.position).astype(np.int32),
    )
