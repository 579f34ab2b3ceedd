"""Exhaustive search of tiny boards on the host, over a table of moves that the game's own step and
mask produced."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.go.rules import Go
from azero.games.go.state import GoState

PASS = -1


@dataclass
class MoveTable:
    """Every position that can be reached from the empty board by legal moves of either colour, and
    what each stone leads to."""

    score: list[int]
    """Black's area minus White's"""
    successors: list[tuple[list[int], list[int]]]
    """for Black and White to move: the positions that a legal stone leads to, repetition aside"""


def move_table(game: Go) -> MoveTable:
    """Explore from the empty board; `game` has komi 0. Repetition plays no part, as every state is
    taken without its past."""

    @jax.jit
    def expand(state: GoState) -> tuple[jax.Array, GoState, jax.Array]:
        def one(state: GoState, to_play: jax.Array) -> tuple[jax.Array, GoState]:
            state = dataclasses.replace(state, to_play=to_play)
            points = jnp.arange(game.num_points)
            return game.legal_action_mask(state)[:-1], jax.vmap(game.step, in_axes=(None, 0))(
                state, points
            )

        legal, states = jax.vmap(lambda s: jax.vmap(one, in_axes=(None, 0))(s, jnp.arange(2)))(
            state
        )
        return legal, states, jax.vmap(game.score)(state)

    first = jax.tree.map(lambda a: np.asarray(a)[None], game.search_state(game.init()))
    index = {first.frames[0, 0].tobytes(): 0}
    table = MoveTable([], [])
    todo = [jax.tree.map(lambda a: a[0], first)]
    while todo:
        chunk, todo = todo[:1024], todo[1024:]
        padded = jax.tree.map(
            lambda *leaves: np.stack(leaves), *chunk, *[chunk[0]] * (1024 - len(chunk))
        )
        legal, states, score = jax.tree.map(np.asarray, expand(padded))
        for number in range(len(chunk)):
            table.score.append(int(score[number]))
            successors: tuple[list[int], list[int]] = ([], [])
            for colour, point in np.argwhere(legal[number]).tolist():
                board = states.frames[number, colour, point, 0].tobytes()
                if board not in index:
                    index[board] = len(index)
                    # Only the stones matter: drop the past.
                    new = jax.tree.map(lambda a, n=number, c=colour, p=point: a[n, c, p], states)
                    frames, sums = np.zeros_like(new.frames), np.zeros_like(new.sums)
                    frames[0], sums[:, 0] = new.frames[0], new.sums[:, 0]
                    todo.append(
                        dataclasses.replace(new, frames=frames, sums=sums, num_moves=np.int32(0))
                    )
                successors[colour].append(index[board])
            table.successors.append(successors)
    return table


def count_games(table: MoveTable, position: int = 0, seen: int = 1) -> int:
    """The number of games in which either colour may move at any time and no position repeats;
    every prefix counts, passes do not."""
    return 1 + sum(
        count_games(table, successor, seen | 1 << successor)
        for colour in (0, 1)
        for successor in table.successors[position][colour]
        if not seen >> successor & 1
    )


class Solver:
    """Depth-first proofs under positional superko with the whole history, deepened move by move.
    Two passes end the game."""

    def __init__(self, table: MoveTable) -> None:
        self.table = table
        self.order = [
            [
                sorted(set(black), key=lambda successor: -table.score[successor]),
                sorted(set(white), key=lambda successor: table.score[successor]),
            ]
            for black, white in table.successors
        ]
        self.memo: dict[tuple[int, int, int, bool, int], tuple[bool, int]] = {}

    def value(self, max_depth: int = 60) -> int:
        """The score of best play, Black first from the empty board: for every goal one of the two
        sides has a proof."""
        goal = max(self.table.score)
        while not self.black_reaches(goal, max_depth):
            goal -= 1
        return goal

    def black_reaches(self, goal: int, max_depth: int) -> bool:
        """Whether Black has a proof of `goal` or White one of less."""
        self.memo.clear()
        for depth in range(1, max_depth):
            if self.proves(0, goal, 0, 0, False, 1, depth):
                return True
            if self.proves(1, 1 - goal, 0, 0, False, 1, depth):
                return False
        raise AssertionError(f"no proof within {max_depth} moves for a score of {goal}")

    def proves(
        self, side: int, goal: int, position: int, to_play: int, passed: bool, seen: int, depth: int
    ) -> bool:
        """Whether `side` surely scores `goal` within `depth` moves; `seen` is the set of past
        positions as bits, `passed` that the last move was a pass."""
        score = self.table.score[position] * (1 if side == 0 else -1)
        is_mine = to_play == side
        if passed and is_mine == (score >= goal):
            return is_mine  # a second pass settles it for the side to move
        if depth == 0:
            return False
        key = (side, position, to_play, passed, seen)
        known = self.memo.get(key)
        if known is not None and (known[0] or known[1] >= depth):
            return known[0]
        stones = [
            (successor, False)
            for successor in self.order[position][to_play]
            if not seen >> successor & 1
        ]
        moves = stones if passed else [*stones, (position, True)]
        result = not is_mine
        for successor, is_pass in moves:
            if (
                self.proves(
                    side, goal, successor, 1 - to_play, is_pass, seen | 1 << successor, depth - 1
                )
                == is_mine
            ):
                result = is_mine
                break
        self.memo[key] = (result, depth)
        return result
