"""One game between two host-side players, under our own rules."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from azero.games.game import Game
from azero.games.position import Position
from azero.players.clock import Clock
from azero.players.player import ILLEGAL, RESIGN, Decision, Move, Player, PlayerError

PLAYED_OUT = "played out"
"""The ending of a game scored by our rules."""
ON_TIME = "loses on time"
"""Begins the reason given where a player loses on time."""


class GameStopped(Exception):
    """A game was stopped before its end."""


@dataclass(frozen=True)
class PlayedGame:
    """A finished game."""

    final: Position
    """The last position, with the moves that led to it."""
    names: tuple[str, str]
    """Of the first and the second mover."""
    rewards: tuple[float, float]
    """Of the first and the second mover; a resignation or a failure loses."""
    ending: str
    """PLAYED_OUT, "NAME resigns", or a player's failure."""
    failed: int | None
    """Which player lost by a failure (0 the first mover), None if none did."""
    decisions: tuple[Decision, ...]
    """Each player's thinking for each move after the opening."""
    seconds: tuple[float, float]
    """Thinking time of both."""
    num_opening_moves: int = 0
    """Moves of the opening, which the players did not choose."""


def play_game(
    game: Game,
    first: Player,
    second: Player,
    clock: Clock = Clock(),  # noqa: B008 (an immutable default)
    opening: Sequence[int] = (),
    start: Position | None = None,
    *,
    is_timed: bool = False,
    free_moves: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> PlayedGame:
    """Play one game and return its record.

    A player that raises PlayerError or makes a move that our rules forbid loses, and the record
    says why. If both fail at the start, the first one loses.

    Args:
      game: the rules.
      first: moves first.
      second: the other player.
      clock: each player's clock before its first move.
      opening: moves at the start that neither player chooses.
      start: position before the opening; None is the start of the game.
      is_timed: whether the clocks run and a player out of time loses; otherwise every move has
        `clock`.
      free_moves: Go: moves of the first player before the second player's first one; the second
        passes until then (AG16: free moves in place of handicap stones). Below 2 is none.
      stop: asked before each move whether to stop the game.

    Raises:
      GameStopped: `stop` said so.
      ValueError: a move of the opening is not legal.
    """
    players = (first, second)
    names = (first.name, second.name)
    position = Position.start(game) if start is None else start
    decisions: list[Decision] = []
    timekeeper = _Timekeeper(clock, is_timed)

    def finish(ending: str, loser: int | None, failed: bool = False) -> PlayedGame:
        rewards = position.rewards
        if loser is not None:
            rewards = (-1.0, 1.0) if loser == 0 else (1.0, -1.0)
        return PlayedGame(
            position,
            names,
            rewards,
            ending,
            loser if failed else None,
            tuple(decisions),
            (timekeeper.seconds[0], timekeeper.seconds[1]),
            min(len(opening), len(position.actions)),
        )

    asked, passes = 0, max(0, free_moves - 1)
    try:
        for asked in (0, 1):
            players[asked].reset()
        for action in opening:
            move, position = Move(position, action), position.play(action)
            for asked in (0, 1):
                players[asked].observe(move)
        while not position.is_over:
            if stop():
                raise GameStopped
            asked = mover = position.to_play
            is_free = mover == 1 and passes > 0
            if is_free:
                passes -= 1
                decision = Decision(game.num_actions - 1)
            else:
                decision = timekeeper.ask(mover, players[mover], position)
                if decision.action == RESIGN:
                    return finish(f"{names[mover]} resigns", mover)
            decisions.append(decision)
            move, position = Move(position, decision.action), position.play(decision.action)
            if is_free:
                position = _without_passes(position)
            for asked in (0, 1) if is_free else (1 - mover,):
                players[asked].observe(move)
    except PlayerError as error:
        return finish(f"{names[asked]}: {error}", asked, failed=True)
    return finish(PLAYED_OUT, None)


def _without_passes(position: Position) -> Position:
    """Return a position of Go in which a pass does not end the game: the pass before it was not the
    player's own choice."""
    state = dataclasses.replace(position.state, num_passes=np.int32(0))
    return Position.of_state(position.game, state, position.actions)


class _Timekeeper:
    """Both players' clocks and thinking times."""

    def __init__(self, clock: Clock, is_timed: bool) -> None:
        self.seconds = [0.0, 0.0]
        self._clocks, self._is_timed = [clock, clock], is_timed

    def ask(self, mover: int, player: Player, position: Position) -> Decision:
        """Return a player's legal move or its resignation.

        Raises:
          PlayerError: it has failed, its time is up, or its move is illegal.
        """
        clock = self._clocks[mover]
        told = clock._replace(opponent_seconds=self._clocks[1 - mover].main_seconds)
        began = time.perf_counter()
        try:
            decision = player.choose(position, told)
        except PlayerError as error:
            # A program is killed when its time is up.
            if self._is_timed and clock.after(time.perf_counter() - began) is None:
                raise PlayerError(f"{ON_TIME}: {error}") from error
            raise
        finally:
            spent = time.perf_counter() - began
            self.seconds[mover] += spent
        if self._is_timed:
            self._clocks[mover] = _time_left(clock, spent)
        action, legal = decision.action, position.legal
        if action != RESIGN and not (0 <= action < len(legal) and legal[action]):
            raise PlayerError(f"{ILLEGAL} {action}")
        return decision


def _time_left(clock: Clock, spent: float) -> Clock:
    """Return the clock after a move that took `spent` seconds.

    Raises:
      PlayerError: the time is up.
    """
    left = clock.after(spent)
    if left is None:
        limit = f"{clock.limit_seconds:.2f} s left"
        raise PlayerError(f"{ON_TIME}, {spent:.2f} s for a move with {limit}")
    return left
