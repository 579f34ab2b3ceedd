"""Eye spaces that the other side kills from inside (nakade): small ones are searched exhaustively,
because random games seldom find the vital points.

The surrounding attackers are assumed to be safe and to have filled all outside liberties, so the
search is on the points inside one chain: captures, simple ko, passes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from azero.games.go.setup import Point, neighbours

MOST_POINTS = 7
"""Largest eye space that is searched, in points: the largest nakade has six (the flower six), and
seven points have 3^7 fillings."""
_EMPTY, _OWNER, _ATTACKER = 0, 1, 2


class _State(NamedTuple):
    """A position within the chain."""

    cells: tuple[int, ...]
    """The state of each point."""
    ko: int
    """The point where a ko may not be recaptured, -1 without one."""
    to_play: int


class EyeSpace:
    """The points inside one chain, which encloses them alone."""

    def __init__(self, points: set[Point], shape: tuple[int, ...], chain: set[Point]) -> None:
        """Make the space of the points of all regions that the chain encloses, at most
        MOST_POINTS."""
        order = sorted(points)
        index = {point: number for number, point in enumerate(order)}
        self._points = order
        self._neighbours = [
            [index[other] for other in neighbours(point, shape) if other in index]
            for point in order
        ]
        self._touches = [
            any(other in chain for other in neighbours(point, shape)) for point in order
        ]

    def is_dead(self, owners: set[Point], attackers: set[Point]) -> bool:
        """Return whether the chain is captured even if its owner moves first, given the points with
        stones of both sides."""
        start = _State(
            tuple(
                _OWNER if point in owners else _ATTACKER if point in attackers else _EMPTY
                for point in self._points
            ),
            -1,
            _OWNER,
        )
        following: dict[_State, list[_State | None]] = {}
        todo = [start]
        while todo:
            state = todo.pop()
            if state not in following:
                following[state] = list(self._following(state))
                todo += [after for after in following[state] if after is not None]
        # The attackers win where they capture the chain or can force its capture; otherwise, as in
        # a seki, the chain is not dead.
        won: set[_State | None] = {None}
        found = True
        while found:
            found = False
            for state, moves in following.items():
                if state not in won and (any if state.to_play == _ATTACKER else all)(
                    after in won for after in moves
                ):
                    won.add(state)
                    found = True
        return start in won

    def _following(self, state: _State) -> Iterator[_State | None]:
        """Yield the positions after each legal move, the pass included; None is the capture of the
        chain."""
        other = _OWNER + _ATTACKER - state.to_play
        yield _State(state.cells, -1, other)
        for point, stone in enumerate(state.cells):
            if stone != _EMPTY or point == state.ko:
                continue
            cells = list(state.cells)
            cells[point] = state.to_play
            if state.to_play == _ATTACKER and not self._chain_lives(cells):
                yield None
                continue
            captured = [
                each
                for neighbour in self._neighbours[point]
                if cells[neighbour] == other
                for each in self._captured(cells, neighbour)
            ]
            for each in captured:
                cells[each] = _EMPTY
            if self._captured(cells, point):
                continue
            alone = all(
                cells[neighbour] != state.to_play for neighbour in self._neighbours[point]
            ) and not (state.to_play == _OWNER and self._touches[point])
            is_ko = (
                alone
                and len(captured) == 1
                and sum(cells[neighbour] == _EMPTY for neighbour in self._neighbours[point]) == 1
            )
            yield _State(tuple(cells), captured[0] if is_ko else -1, other)

    def _string(self, cells: list[int], first: list[int]) -> tuple[set[int], bool]:
        """Return the points of one colour that are connected to `first`, and whether any of them
        has a liberty."""
        string, todo, has_liberty = set(first), list(first), False
        while todo:
            point = todo.pop()
            for neighbour in self._neighbours[point]:
                has_liberty |= cells[neighbour] == _EMPTY
                if cells[neighbour] == cells[point] and neighbour not in string:
                    string.add(neighbour)
                    todo.append(neighbour)
        return string, has_liberty

    def _captured(self, cells: list[int], point: int) -> set[int]:
        """Return the stones of the string at `point` if it has no liberty; a string connected to
        the chain shares the chain's liberties."""
        string, has_liberty = self._string(cells, [point])
        if has_liberty or (
            cells[point] == _OWNER
            and any(self._touches[each] for each in string)
            and self._chain_lives(cells)
        ):
            return set()
        return string

    def _chain_lives(self, cells: list[int]) -> bool:
        """Return whether the chain has a liberty, of its own or through connected stones inside."""
        own = [
            point for point, stone in enumerate(cells) if stone == _OWNER and self._touches[point]
        ]
        return (
            any(
                stone == _EMPTY and touches
                for stone, touches in zip(cells, self._touches, strict=True)
            )
            or self._string(cells, own)[1]
        )
