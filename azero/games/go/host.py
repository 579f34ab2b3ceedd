"""The rules of Go for one position on the host, without compilation: a real game can be set up,
played and scored at once, under any rules.

The state is that of the compiled rules, array for array, so either can continue from the other. A
set of points is an integer whose bit p is point p.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from azero.games import bits
from azero.games.game import Facts
from azero.games.go import setup, stones
from azero.games.go.state import GoRules, GoState

_WRAP = 1 << 32
"""Modulus of the sums of codes."""


class Geometry(NamedTuple):
    """The points of a board, and what is adjacent, as sets of points."""

    width: int
    full: int
    left: int
    """The first column."""
    right: int
    codes: tuple[int, ...]
    """Codes of the points; see `stones.codes`."""

    def neighbours(self, points: int) -> int:
        """Return the points adjacent to `points`."""
        sideways = ((points & ~self.right) << 1) | ((points & ~self.left) >> 1)
        return sideways | ((points << self.width) & self.full) | (points >> self.width)

    def flood(self, seeds: int, within: int) -> int:
        """Return all points of `within` that are connected to `seeds` within it."""
        reached, grown = 0, seeds & within
        while grown != reached:
            reached, grown = grown, grown | (self.neighbours(grown) & within)
        return reached

    def chains(self, seeds: int, within: int) -> Iterator[int]:
        """Yield the chains of `within` that contain a point of `seeds`, each once."""
        seeds &= within
        while seeds:
            chain = self.flood(seeds & -seeds, within)
            yield chain
            seeds &= ~chain

    def sum_codes(self, points: int) -> int:
        """Return the sum of the codes of `points`."""
        total = 0
        while points:
            total += self.codes[(points & -points).bit_length() - 1]
            points &= points - 1
        return total % _WRAP


@functools.lru_cache(maxsize=8)
def geometry_of(shape: tuple[int, int]) -> Geometry:
    """Return the geometry of a board of `shape`."""
    height, width = shape
    left = sum(1 << row * width for row in range(height))
    return Geometry(
        width,
        (1 << height * width) - 1,
        left,
        left << (width - 1),
        tuple(stones.codes(height * width).tolist()),
    )


def setup_state(
    game: GoRules, black_points: Sequence[int], white_points: Sequence[int], to_play: int
) -> GoState:
    """Return a game that starts with stones on the board; see `Go.setup`.

    Raises:
      ValueError: a point is off the board or used twice, or a chain has no liberty.
    """
    board = setup.board_of(black_points, white_points, game.board_shape)
    codes = stones.codes(game.num_points)
    frames = np.zeros((game.num_frames, 2 * bits.num_words(game.num_points)), np.uint32)
    frames[0] = np.concatenate([bits.pack_host(board == 1), bits.pack_host(board == -1)])
    sums = np.zeros((2, game.num_frames), np.uint32)
    sums[:, 0] = [codes[board.reshape(-1) == colour].sum(dtype=np.uint32) for colour in (1, -1)]
    history = None
    if game.superko != "simple":
        history = np.zeros((2, game.max_moves + 1), np.uint32)
        history[:, 0] = sums[:, 0]
    return GoState(
        frames=frames,  # type: ignore[arg-type]
        atari=bits.pack_host(setup.atari_of(board)),  # type: ignore[arg-type]
        sums=sums,  # type: ignore[arg-type]
        history=history,  # type: ignore[arg-type]
        to_play=np.int32(to_play),  # type: ignore[arg-type]
        num_passes=np.int32(0),  # type: ignore[arg-type]
        num_moves=np.int32(0),  # type: ignore[arg-type]
        komi=np.int32(2 * game.komi) if game.shows_komi else None,  # type: ignore[arg-type]
    )


def step(game: GoRules, state: GoState, action: int) -> GoState:
    """Return the state after a legal `action`; a finished game stays as it is."""
    if _is_over(game, state):
        return state
    num_moves, to_play = int(state.num_moves) + 1, int(state.to_play)
    frame, atari, sums = (
        np.asarray(state.frames)[0],
        np.asarray(state.atari),
        np.asarray(state.sums)[:, 0],
    )
    if action < game.num_points:
        frame, atari, sums = _place(game, state, action)
    frames = np.concatenate([frame[None], np.asarray(state.frames)[:-1]])
    history = None if state.history is None else np.array(state.history)
    if history is not None:
        history[:, num_moves] = sums
    return state.replace(  # type: ignore[attr-defined]
        frames=frames,
        atari=atari,
        sums=np.concatenate([sums[:, None], np.asarray(state.sums)[:, :-1]], axis=1),
        history=history,
        to_play=np.int32(1 - to_play),
        num_passes=np.int32(int(state.num_passes) + 1 if action == game.num_points else 0),
        num_moves=np.int32(num_moves),
    )


def facts(game: GoRules, state: GoState) -> Facts:
    """Return the facts about a position."""
    legal = np.ones(game.num_actions, bool)
    if not _is_over(game, state):
        legal[:-1] = _legal_points(game, state)
        return Facts(int(state.to_play), False, (0.0, 0.0), legal)
    reward = float(np.float32(game.result_of(_points(game, state))))
    return Facts(int(state.to_play), True, (reward, -reward), legal)


def _is_over(game: GoRules, state: GoState) -> bool:
    return int(state.num_passes) >= 2 or int(state.num_moves) >= game.max_moves


def _set_of(words: Any) -> int:
    return int.from_bytes(np.asarray(words).astype("<u4").tobytes(), "little")


def _words_of(points: int, num_words: int) -> np.ndarray:
    return np.frombuffer(points.to_bytes(4 * num_words, "little"), "<u4").astype(np.uint32)


def _colours(state: GoState) -> tuple[int, int]:
    """Return Black's and White's stones."""
    black, white = np.split(np.asarray(state.frames[0]), 2)
    return _set_of(black), _set_of(white)


def _sides(state: GoState) -> tuple[int, int, int]:
    """Return the stones of the side to move, those of the other side, and the stones in atari."""
    own, other = reversed(_colours(state)) if state.to_play else _colours(state)
    return own, other, _set_of(state.atari)


def _place(game: GoRules, state: GoState, point: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the newest frame, the stones in atari and the two sums after a stone at `point`."""
    board, stone = geometry_of(game.board_shape), 1 << point
    own, other, atari = _sides(state)
    own |= stone
    captured = board.flood(board.neighbours(stone) & other & atari, other)
    other &= ~captured
    chain = board.flood(stone, own)
    removed = 0 if board.neighbours(chain) & ~(own | other) & board.full else chain
    own &= ~removed
    empty = board.full & ~(own | other)
    touched = stone | board.neighbours(stone | captured | removed)
    atari &= own | other
    for side in (own, other):
        for group in board.chains(touched, side):
            liberties = board.neighbours(group) & empty
            atari = atari | group if liberties & (liberties - 1) == 0 else atari & ~group
    changes = [board.codes[point] - board.sum_codes(removed), -board.sum_codes(captured)]
    halves = [own, other]
    if state.to_play:
        changes.reverse()
        halves.reverse()
    num_words = bits.num_words(game.num_points)
    sums = [
        (int(now) + change) % _WRAP
        for now, change in zip(np.asarray(state.sums)[:, 0], changes, strict=True)
    ]
    frame = np.concatenate([_words_of(half, num_words) for half in halves])
    return frame, _words_of(atari, num_words), np.array(sums, np.uint32)


def _legal_points(game: GoRules, state: GoState) -> np.ndarray:
    """Return bool[N]: where the side to move may place a stone."""
    board = geometry_of(game.board_shape)
    own, other, atari = _sides(state)
    empty = board.full & ~(own | other)
    lives = empty & board.neighbours(empty | (own & ~atari) | (other & atari))
    added, taken = _past(game, state)
    legal = lives & ~_recreating(board, other, atari, added, taken)
    if game.suicide:
        legal |= _suicides(board, own, empty & ~lives, added, taken)
    return bits.unpack_host(_words_of(legal, bits.num_words(game.num_points)), game.num_points)


def _past(game: GoRules, state: GoState) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays uint32[T] for the positions that must not be recreated: the own sum then
    less now, and the other side's sum now less then."""
    sums, num_moves = np.asarray(state.sums), int(state.num_moves)
    if state.history is None:
        past, age = sums, np.arange(sums.shape[1])
    else:
        past = np.asarray(state.history)[:, : num_moves + 1]
        age = num_moves - np.arange(num_moves + 1)
    checked = (age <= num_moves) & {
        "simple": age <= 1,
        "situational": age % 2 == 1,
        "positional": age >= 0,
    }[game.superko]
    own, other = (1, 0) if state.to_play else (0, 1)
    return past[own, checked] - sums[own, 0], sums[other, 0] - past[other, checked]


def _recreating(
    board: Geometry, other: int, atari: int, added: np.ndarray, taken: np.ndarray
) -> int:
    """Return the points where a stone, with its captures, recreates a forbidden position."""
    found = 0
    points = (added & 0x3FF).astype(np.int64) - 1
    for index in np.flatnonzero((points >= 0) & (points < len(board.codes))):
        point = int(points[index])
        if board.codes[point] == int(added[index]):
            captured = board.flood(board.neighbours(1 << point) & other & atari, other)
            if board.sum_codes(captured) == int(taken[index]):
                found |= 1 << point
    return found


def _suicides(board: Geometry, own: int, points: int, added: np.ndarray, taken: np.ndarray) -> int:
    """Return those suicidal `points` that recreate no forbidden position; a single stone leaves the
    position unchanged."""
    several = points & board.neighbours(own)
    unchanged = set(added[taken == 0].tolist())
    legal = 0 if 0 in unchanged else points & ~several
    while several:
        stone = several & -several
        removed = board.sum_codes(board.flood(board.neighbours(stone) & own, own))
        legal |= stone if -removed % _WRAP not in unchanged else 0
        several &= ~stone
    return legal


def _points(game: GoRules, state: GoState) -> int:
    """Return Black's area less White's."""
    board = geometry_of(game.board_shape)
    black, white = _colours(state)
    empty = board.full & ~(black | white)
    reached = [board.flood(board.neighbours(side) & empty, empty) for side in (black, white)]
    areas = [black | (reached[0] & ~reached[1]), white | (reached[1] & ~reached[0])]
    return areas[0].bit_count() - areas[1].bit_count()
