"""One game in progress, for any protocol: positions with undo, and a thinker that is made when it
is first needed."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from azero.console.standard_output import say
from azero.engines.background import WAIT_SECONDS, Background
from azero.games.game import Game
from azero.games.position import Position
from azero.players.points import PointsEstimate
from azero.players.thinking import Analysis, Limits, Thinker, ThinkOptions, empty_analysis


class ThinkingPlayer(Thinker, Protocol):
    """A thinker that can also clear its tree."""

    def reset(self) -> None:
        """Begin a new game."""

    def limit_memory(self, megabytes: int) -> None:
        """Limit the tree's memory to about `megabytes` MiB from now on."""

    def warm_up_in_steps(self, position: Position) -> Iterator[None]:
        """Compile what thinking about positions like this one needs; after the first step it can
        think, while another thread takes the other steps."""


MakeThinker = Callable[[Game], ThinkingPlayer]
"""Makes a thinker for a game; it must also accept positions of the same board under other rules
(komi, superko, suicide)."""


class Session:
    """The positions of a game, and the thinker that searches them.

    `game` is the rules by which the thinker plays; it may be set at any time. The positions may be
    of a game that differs from it in what decides the result alone (komi), so that the rules need
    not be compiled for every komi.

    The thinker keeps its tree from position to position as long as the game continues by single
    moves; anything else (undo, set-up stones, another side to move) clears it.
    """

    def __init__(
        self,
        game: Game,
        make_thinker: MakeThinker,
        *,
        position: Position | None = None,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin a game at `position`, or that of `game`, the rules by which the thinker plays.
        `is_interrupted` says, cheaply, whether input waits, which ends pondering and analysis at
        once."""
        self.game = game
        self._make_thinker = make_thinker
        self._is_interrupted = is_interrupted
        self._thinker: tuple[Game, ThinkingPlayer] | None = None
        self._preparation: Background[ThinkingPlayer] | None = None
        self._prepared_for = game
        self._positions: list[Position] = []
        self.start(Position.start(game) if position is None else position)

    @property
    def position(self) -> Position:
        """The current position."""
        return self._positions[-1]

    @property
    def positions(self) -> list[Position]:
        """All positions of the game, the first one included."""
        return list(self._positions)

    @property
    def num_moves(self) -> int:
        """Moves since the beginning, which can be taken back."""
        return len(self._positions) - 1

    def start(self, position: Position) -> None:
        """Start over at `position`."""
        self._positions = [position]
        self.clear_tree()

    def restore(self, positions: Sequence[Position]) -> None:
        """Replace the game by one given by all its positions, the first one included."""
        self._positions = list(positions)
        self.clear_tree()

    def extend(self, positions: Sequence[Position]) -> None:
        """Append positions that follow the current one by moves of the game; the thinker keeps its
        tree."""
        self._positions += positions

    def play(self, action: int, position: Position | None = None) -> None:
        """Play a move, in `position` if that differs from the current one (say, by the side to
        move); `undo` returns to the current one.

        Raises:
          ValueError: the move is not legal.
        """
        following = (position or self.position).play(action)
        if position is not None and position is not self.position:
            self.clear_tree()
        self._positions.append(following)

    def undo(self) -> None:
        """Take back the last move.

        Raises:
          ValueError: there is no move to take back.
        """
        if not self.num_moves:
            raise ValueError("no move to take back")
        self._positions.pop()
        self.clear_tree()

    def clear_tree(self) -> None:
        """Clear the thinker's tree."""
        if self._preparation is not None and self._preparation.is_ready():
            self._take_prepared()
        if self._thinker is not None:
            self._thinker[1].reset()

    def _take_prepared(self) -> None:
        """Wait for the thinker that is being prepared."""
        if self._preparation is not None:
            thinker = self._preparation.result()
            if self._thinker is None:
                self._thinker = (self._prepared_for, thinker)

    def load_thinker(self) -> ThinkingPlayer:
        """Return the thinker. It is made when first needed, and again for another board; it gets
        other changes of the rules from the position.

        Raises:
          StartError: it was being prepared, and that failed.
        """
        self._take_prepared()
        if self._thinker is None or self._thinker[0].board_shape != self.game.board_shape:
            self._thinker = None
            self._thinker = (self.game, self._make_thinker(self.game))
        return self._thinker[1]

    def prepare(self, quietly: bool = False) -> None:
        """Make the thinker and compile everything that it needs, or wait for the preparation that
        has begun.

        Raises:
          StartError: that failed.
        """
        if self._preparation is None:
            self.begin_to_prepare(quietly=quietly)
        assert self._preparation is not None
        self._preparation.finish()

    def begin_to_prepare(self, *others: Callable[[], object], quietly: bool = False) -> None:
        """Make the thinker and compile what it needs, then call `others`, in the background.
        Progress goes to standard error."""
        game, position = self.game, self._known(self.position)
        self._prepared_for = game

        def announce(text: str) -> None:
            if not quietly:
                say(text)

        def work(give: Callable[[ThinkingPlayer], None]) -> None:
            announce("preparing the network and the search ...")
            began = time.perf_counter()
            if not position.is_over:
                position.play(int(np.argmax(position.legal)))
            thinker = self._make_thinker(game)
            steps = thinker.warm_up_in_steps(position)
            next(steps)
            give(thinker)
            announce(f"ready after {time.perf_counter() - began:.1f} s; faster programs follow")
            for _ in steps:
                pass
            for other in others:
                other()
            announce(f"all programs are compiled after {time.perf_counter() - began:.1f} s")

        self._preparation = Background(work)

    def can_think(self, seconds: float = 0.0) -> bool:
        """Wait at most `seconds`; return whether the thinker is ready (or preparing it has
        failed)."""
        return self._preparation is None or self._preparation.is_ready(seconds)

    def think(
        self,
        position: Position,
        limits: Limits,
        options: ThinkOptions = ThinkOptions(),  # noqa: B008
        *,
        is_endless: bool = False,
    ) -> Analysis:
        """Think about `position`, which is the current one or that with another side to move.

        An `is_endless` search has no limits and ends as soon as there is input, any other as
        `options.should_stop` says; otherwise see `Thinker.think`. This waits for a thinker that is
        still being prepared, and subtracts the wait from the time to think; a search that is
        stopped before it begins has no moves.

        Raises:
          StartError: the thinker was being prepared, and that failed.
        """
        began = time.perf_counter()
        stop = self._is_interrupted if is_endless else options.should_stop
        while not self.can_think(WAIT_SECONDS):
            if stop():
                return empty_analysis(position, seconds=time.perf_counter() - began)
        if position is not self.position:
            self.clear_tree()
        thinker, waited = self.load_thinker(), time.perf_counter() - began
        if limits.seconds is not None:
            limits = dataclasses.replace(limits, seconds=max(0.0, limits.seconds - waited))
        analysis = thinker.think(
            self._known(position),
            Limits() if is_endless else limits,
            dataclasses.replace(options, should_stop=stop),
        )
        return dataclasses.replace(analysis, seconds=analysis.seconds + waited)

    def ponder(self) -> None:
        """Search the current position until input waits; do nothing if the game is over."""
        if not self.position.is_over and not self._is_interrupted():
            self.load_thinker().think(
                self._known(self.position), Limits(), ThinkOptions(should_stop=self._is_interrupted)
            )

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the network's policy float32[A] over legal moves and its value for the side to
        move; `symmetry` None averages over all."""
        return self.load_thinker().evaluate(self._known(position), symmetry)

    def estimate_points(
        self, position: Position, actions: Sequence[int] = ()
    ) -> list[PointsEstimate] | None:
        """Return what the network expects of the end of the game; see `Thinker`."""
        return self.load_thinker().estimate_points(self._known(position), actions)

    def estimate_draws(self, position: Position, actions: Sequence[int]) -> list[float] | None:
        """Return the network's probability of a draw after each move; see `Thinker`."""
        return self.load_thinker().estimate_draws(self._known(position), actions)

    def _known(self, position: Position) -> Position:
        """Return `position` under the thinker's rules."""
        is_same = position.game == self.game
        return position if is_same else dataclasses.replace(position, game=self.game)
