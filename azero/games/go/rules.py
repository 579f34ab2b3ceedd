"""The rules of Go (Tromp-Taylor) as in the papers: area scoring, superko; two passes or a move
limit end the game."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azero.config import check_range
from azero.games import bits
from azero.games.game import Facts, Scored
from azero.games.go import encoding, host, text
from azero.games.go.alphago2016 import features as features2016
from azero.games.go.alphago2016 import patterns
from azero.games.go.settings import check_komi
from azero.games.go.state import GoRules, GoState, Superko
from azero.games.go.stones import MAX_POINTS, Stones
from azero.games.symmetry import WithSymmetries, count
from azero.types import Array

MAX_SIDE = 31
"""A row of points fits a 32-bit word with a free bit."""
MOST_MOVES = 100_000
"""As in chess: a state has room for eight bytes of every position of its game."""


@dataclass(frozen=True, init=False)
class Go(GoRules, WithSymmetries):
    """Go on a board of any size. Actions 0..N-1 are the points row by row from the top left; N is
    pass.

    Repetition. `superko` says which boards a stone (with its captures) must not recreate:
    "positional" any earlier board of the game; "situational" any earlier board with the same side
    to move (passes count as moves); "simple" the board before the opponent's last move. Passing is
    always legal. In the slim state of a search tree the rule applies to the eight newest boards
    only (`search_state`).

    Suicide. With `suicide` a move may capture its own chain (Tromp-Taylor). Suicide of a single
    stone leaves the board unchanged: illegal as a repetition under positional superko and simple
    ko, and under situational superko if the other side has been to move in this position before.
    """

    name: ClassVar[str] = "go"
    _superko_number: ClassVar[Array | None] = None
    """int32[], traced, in the copies of `with_arguments`: the superko rule"""
    _allows_suicide: ClassVar[Array | None] = None
    """bool[], traced, in the same copies"""

    def __init__(
        self,
        size: int | tuple[int, int] = 19,
        komi: float = 7.5,  # AGZ methods
        superko: Superko = "positional",
        suicide: bool = False,
        max_moves: int | None = None,
        num_planes: int = encoding.NUM_PLANES,
        margin_weight: float = 0.0,
    ) -> None:
        """Set the rules. `max_moves` None is two moves per point, as in AlphaGo Zero (722, AGZ
        methods).

        With a `margin_weight` w the reward is (1 - w) times the result plus w times the margin
        divided by the points of the board, so that a player learns to win by more and to lose by
        less; 0 in the papers.

        Raises:
          ValueError: an option is out of range; it is quoted with what is allowed.
        """
        sides = size if isinstance(size, tuple | list) else (size, size)
        if len(sides) != 2 or not all(isinstance(side, int | np.integer) for side in sides):
            raise ValueError(f"size is a number or a pair (rows, columns), not {size!r}")
        height, width = map(int, sides)
        if not (
            1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE and height * width <= MAX_POINTS
        ):
            raise ValueError(f"size {size}: sides are 1 to {MAX_SIDE}")
        check_komi(komi)
        _check_is_one_of("superko", superko, typing.get_args(Superko))
        plane_counts = (
            encoding.NUM_PLANES,
            encoding.NUM_TWO_COLOUR_PLANES,
            encoding.NUM_KOMI_PLANES,
            *features2016.PLANE_COUNTS,
            *patterns.PLANE_COUNTS,
        )
        _check_is_one_of("num_planes", num_planes, plane_counts)
        if not 0.0 <= margin_weight < 1.0:
            raise ValueError(f"margin_weight is at least 0 and less than 1, not {margin_weight}")
        for field, value in {
            "board_shape": (height, width),
            "komi": float(komi),
            "superko": superko,
            "suicide": bool(suicide),
            "max_moves": 2 * height * width if max_moves is None else max_moves,
            "num_planes": num_planes,
            "margin_weight": float(margin_weight),
        }.items():
            object.__setattr__(self, field, value)
        check_range(self, "", "max_moves", 1, MOST_MOVES)

    @property
    def max_legal_actions(self) -> int:
        """All actions: on the empty board every one is legal."""
        return self.num_actions

    @property
    def num_symmetries(self) -> int:
        """8 on a square board, 4 on a rectangular one."""
        return count(self.board_shape)

    @property
    def frame_words(self) -> int:
        """uint32 words of one board, 24 at 19x19, and of its komi where the planes show it."""
        return 2 * bits.num_words(self.num_points) + self.shows_komi

    @property
    def _stones(self) -> Stones:
        return Stones(self.board_shape, self.suicide)

    def init(self) -> GoState:
        """Return the empty board, Black to move."""
        return self.setup((), (), to_play=0)

    def empty_boards(self, komis: Sequence[float]) -> GoState:
        """Return games with the given komi values before their first move, states[P]; for planes
        that show the komi.

        Raises:
          ValueError: a komi is out of range.
        """
        games = [self._with(komi=komi).init() for komi in komis]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *games)

    def setup(
        self, black_points: Sequence[int], white_points: Sequence[int], to_play: int
    ) -> GoState:
        """Return a game that starts with stones on the board (point numbers), `to_play` 0 for Black
        or 1 for White.

        Raises:
          ValueError: a point is off the board or used twice, or a chain has no liberty.
        """
        return jax.tree.map(
            jnp.asarray, host.setup_state(self, black_points, white_points, to_play)
        )

    def step(self, state: GoState, action: Array) -> GoState:
        """Play `action` (int32[], legal). A finished game stays as it is."""
        is_over = self.is_terminal(state)
        action = jnp.asarray(action, jnp.int32)
        point = jnp.where(is_over, self.num_points, action)
        placed = self._stones.place(state.frames[0], state.atari, point, state.to_play)
        now = state.sums[:, 0] + placed.change
        num_moves = state.num_moves + 1
        history = state.history
        if history is not None:
            history = jnp.where(
                jnp.arange(history.shape[1], dtype=jnp.int32)[None] == num_moves,
                now[:, None],
                history,
            )
        played = GoState(
            frames=jnp.concatenate([placed.board[None], state.frames[:-1]]),
            atari=placed.atari,
            sums=jnp.concatenate([now[:, None], state.sums[:, :-1]], axis=1),
            history=history,
            to_play=1 - state.to_play,
            num_passes=jnp.where(action == self.num_points, state.num_passes + 1, 0),
            num_moves=num_moves,
            komi=state.komi,
        )
        return jax.tree.map(lambda old, new: jnp.where(is_over, old, new), state, played)

    def legal_action_mask(self, state: GoState) -> Array:
        """Return bool[N + 1]: legal points and pass; all True once the game is over."""
        past, checked = self._past(state)
        words = self._stones.legal(
            state.frames[0],
            state.atari,
            state.sums[:, 0],
            past,
            checked,
            state.to_play,
            self._allows_suicide,
        )
        points = bits.unpack(words, self.num_points)
        return jnp.concatenate([points, jnp.ones(1, bool)]) | self.is_terminal(state)

    def _past(self, state: GoState) -> tuple[Array, Array]:
        """Return the sums uint32[2, T] of past positions and which of them a stone must not
        recreate, bool[T]."""
        if state.history is None:
            past = state.sums
            age = jnp.arange(self.num_frames, dtype=jnp.int32)
        else:
            past = state.history
            age = state.num_moves - jnp.arange(past.shape[1], dtype=jnp.int32)
        exists = (age >= 0) & (age <= state.num_moves)
        return past, exists & self._checked_ages(age)

    def _checked_ages(self, age: Array) -> Array:
        """Return bool[T]: which positions, `age` int32[T] moves ago, a stone must not recreate."""
        if self._superko_number is not None:
            names = typing.get_args(Superko)
            is_simple, is_situational = (
                self._superko_number == names.index(name) for name in ("simple", "situational")
            )
            return jnp.where(is_simple, age <= 1, ~is_situational | (age % 2 == 1))
        if self.superko == "simple":
            return age <= 1
        if self.superko == "situational":
            return age % 2 == 1
        return jnp.ones_like(age, bool)

    def to_play(self, state: GoState) -> Array:
        """Return int32[]: 0 for Black, 1 for White."""
        return state.to_play

    def is_terminal(self, state: GoState) -> Array:
        """Return bool[]: two passes in a row, or `max_moves` moves."""
        return (state.num_passes >= 2) | (state.num_moves >= self.max_moves)

    def rewards(self, state: GoState) -> Array:
        """Return float32[2] for Black and White: +1, -1, or 0 for a draw, unless the margin counts;
        zero until the end."""
        margin = self.final_points(state) - self._komi_of(state)
        reward = jnp.where(
            self.is_terminal(state), self._reward(jnp.sign(margin), margin / self.num_points), 0.0
        )
        return jnp.stack([reward, -reward])

    def score(self, state: GoState) -> Array:
        """Return float32[]: Black's area minus White's area (stones, and empty points that reach
        only them) minus komi."""
        return self._points(state, jnp.ones((), bool)) - self._komi_of(state)

    def _komi_of(self, state: GoState) -> float | Array:
        return self.komi if state.komi is None else 0.5 * state.komi.astype(jnp.float32)

    def general(self) -> Go:
        """Return the rules that stand for all komi and `arguments`; with suicide, because a program
        without it cannot add it."""
        return self._with(komi=0.0, superko="positional", suicide=True, max_moves=None)

    def arguments(self) -> np.ndarray:
        """Return int32[3]: the number of the superko rule, whether suicide is legal, and the move
        limit."""
        return np.array(
            [typing.get_args(Superko).index(self.superko), self.suicide, self.max_moves], np.int32
        )

    def with_arguments(self, arguments: Array) -> Go:
        """Return these rules, which allow suicide, with traced `arguments`; only for `step`,
        `legal_action_mask` and `is_terminal` of slim states."""
        rules = self._with()
        for field, value in {
            "_superko_number": arguments[0],
            "_allows_suicide": arguments[1] != 0,
            "max_moves": arguments[2],
        }.items():
            object.__setattr__(rules, field, value)
        return rules

    def seen_as(self, trained: Scored) -> Go:
        """Return the same rules with the planes and the rewards of `trained`."""
        assert isinstance(trained, Go)
        return self._with(num_planes=trained.num_planes, margin_weight=trained.margin_weight)

    def _with(self, **changes: Any) -> Go:
        """Return a copy with other arguments of `__init__`."""
        names = ("komi", "superko", "suicide", "max_moves", "num_planes", "margin_weight")
        own = {name: getattr(self, name) for name in names}
        return Go(**{"size": self.board_shape, **own, **changes})

    def final_points(self, state: GoState) -> Array:
        """Return float32[]: Black's area minus White's at the end of a game, without komi; zero
        until then."""
        is_over = self.is_terminal(state)
        return jnp.where(is_over, self._points(state, is_over), 0.0)

    def _points(self, state: GoState, wanted: Array) -> Array:
        black, white = self._areas(state.frames[0], wanted)
        points = [jnp.bitwise_count(area).sum(dtype=jnp.int32) for area in (black, white)]
        return (points[0] - points[1]).astype(jnp.float32)

    def owners(self, frame: Array) -> Array:
        """Return int8[H, W] of the position of a frame uint32[F]: 1 for Black's area, -1 for
        White's, 0 for neither's (Tromp-Taylor: dead stones count as alive)."""
        areas = self._areas(frame[: 2 * bits.num_words(self.num_points)], jnp.ones((), bool))
        black, white = (bits.unpack(area, self.num_points) for area in areas)
        return (black.astype(jnp.int8) - white.astype(jnp.int8)).reshape(self.board_shape)

    def is_scored_after(self, action: Array) -> Array:
        """Return bool[]: the last move of the game was a pass."""
        return jnp.asarray(action) == self.num_points

    def _areas(self, board: Array, wanted: Array) -> tuple[Array, Array]:
        black, white = jnp.split(board, 2)
        black_territory, white_territory = self._stones.territory(board, wanted)
        return black | black_territory, white | white_territory

    def observe(self, state: GoState) -> Array:
        """Return the planes bool[H, W, C] (AGZ methods, 'Neural network architecture'; AG16
        Extended Data Table 2), or the numbers of AG16's Table 4."""
        return self._planes(state.frames, state.to_play, state.komi)

    def search_state(self, state: GoState) -> GoState:
        """Return the state without the history of the whole game: it keeps the eight newest boards,
        and the komi where the planes show it (also that of a state without one).

        A search may therefore repeat a board that is more than seven moves old. In 76,800 positions
        of random play, passes included, that concerned 113 moves at 3x3 and none at 5x5 and 9x9
        (`python -m azero.bench.rules repetitions`). Of 25,835 real games five had a cycle, of six
        or eight moves, which eight boards suffice to detect.
        """
        komi = None
        if self.shows_komi:
            komi = jnp.int32(2 * self.komi) if state.komi is None else state.komi
        return dataclasses.replace(state, history=None, komi=komi)

    def pack_frame(self, state: GoState) -> Array:
        """Return uint32[F]: the board, Black's words before White's, and twice the komi where the
        planes show it."""
        if not self.shows_komi:
            return state.frames[0]
        assert state.komi is not None, "a state of rules whose planes do not show the komi"
        return jnp.concatenate([state.frames[0], state.komi[None].astype(jnp.uint32)])

    def komi_of(self, frame: Sequence[int]) -> float:
        """Host side: return the komi of the game of a frame."""
        return int(np.uint32(frame[-1]).astype(np.int32)) / 2 if self.shows_komi else self.komi

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes bool[H, W, C] of eight frames uint32[8, F], newest first."""
        if self.shows_komi:
            return self._planes(frames[:, :-1], to_play, frames[0, -1].astype(jnp.int32))
        return self._planes(frames, to_play, None)

    def _planes(self, frames: Array, to_play: Array, komi: Array | None) -> Array:
        if self.num_planes in patterns.PLANE_COUNTS:
            return patterns.planes_from_frames(
                frames, jnp.asarray(to_play), self.board_shape, self.num_planes
            )
        if self.num_planes in features2016.PLANE_COUNTS:
            checked = self._checked_ages(jnp.arange(self.num_frames, dtype=jnp.int32))
            return features2016.planes_from_frames(
                frames, jnp.asarray(to_play), self.board_shape, checked, self.num_planes
            )
        planes = encoding.planes_from_frames(frames, to_play, self.board_shape)
        if self.num_planes == encoding.NUM_TWO_COLOUR_PLANES:
            return encoding.with_white_to_move(planes, to_play)
        if not self.shows_komi:
            return planes
        assert komi is not None, "a state of rules whose planes do not show the komi"
        return encoding.with_komi(planes, to_play, komi)

    def format_action(self, state: GoState, action: int) -> str:
        """Return the vertex (D4) or "pass"."""
        return text.format_vertex(int(action), self.board_shape)

    def host_setup(
        self, black_points: Sequence[int], white_points: Sequence[int], to_play: int
    ) -> GoState:
        """Host side: return what `setup` returns, as NumPy arrays, with the same errors."""
        return host.setup_state(self, black_points, white_points, to_play)

    def host_init(self) -> GoState:
        """Host side: return the empty board, Black to move, as NumPy arrays."""
        return host.setup_state(self, (), (), to_play=0)

    def host_step(self, state: GoState, action: int) -> GoState:
        """Host side: return what `step` returns, without a compiled program."""
        return host.step(self, state, action)

    def host_facts(self, state: GoState) -> Facts:
        """Host side: return who is to move, whether the game is over, the rewards and the legal
        moves, without a compiled program."""
        return host.facts(self, state)

    def ending(self, state: GoState) -> str:
        """Host side: return how a game that is over ended."""
        return "two passes" if int(state.num_passes) >= 2 else "move limit"

    def board(self, state: GoState) -> np.ndarray:
        """Host side: return the board int8[H, W], 1 for Black's stones, -1 for White's."""
        frame = np.asarray(state.frames[0])
        return encoding.boards_of(frame, self.num_points).reshape(self.board_shape)

    def format_board(self, state: GoState) -> str:
        """Return the diagram with coordinates, X for Black and O for White."""
        return text.format_diagram(self.board(state))


def _check_is_one_of(name: str, value: object, allowed: Collection[object]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(map(str, allowed))}, not {value!r}")
