"""One game between two host-side players, under our own rules."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from azero.games.game import Game
from azero.players.player import RESIGN, Clock, Decision, Move, Player, PlayerError, Position

PLAYED_OUT = "played out"
"""The ending of a game scored by our rules."""


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

    @property
    def winner(self) -> int | None:
        """0 for the first mover, 1 for the second, None for a draw."""
        return (
            None if self.rewards[0] == self.rewards[1] else int(self.rewards[1] > self.rewards[0])
        )


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
) -> PlayedGame:
    """Play one game, from the end of `opening` on, and return its record. It begins with the
    position `start`; None is the game's own.

    A player who raises PlayerError, or plays what our rules forbid, loses, and the record says why.
    Two players who fail at the start: the first one loses.

    Args:
      game: the rules.
      first: moves first.
      second: the other player.
      clock: of each player before its first move.
      opening: moves that neither has chosen.
      start: see above.
      is_timed: the clocks run, and who oversteps its own loses; else every move has `clock`.
      free_moves: Go: moves of the first mover before the first one of the second, which passes
        meanwhile (AG16: free moves in place of handicap stones); below 2 there are none.

    Raises:
      ValueError: a move of the opening is not legal.
    """
    players = (first, second)
    names = (first.name, second.name)
    position = Position.start(game) if start is None else start
    decisions: list[Decision] = []
    seconds = [0.0, 0.0]

    def finish(ending: str, loser: int | None, failed: bool = False) -> PlayedGame:
        rewards = (
            position.rewards if loser is None else ((-1.0, 1.0) if loser == 0 else (1.0, -1.0))
        )
        return PlayedGame(
            position,
            names,
            rewards,
            ending,
            loser if failed else None,
            tuple(decisions),
            (seconds[0], seconds[1]),
            min(len(opening), len(position.actions)),
        )

    asked = 0
    try:
        for asked in (0, 1):
            players[asked].reset()
        for action in opening:
            move, position = Move(position, action), position.play(action)
            for asked in (0, 1):
                players[asked].observe(move)
    except PlayerError as error:
        return finish(f"{names[asked]}: {error}", asked, failed=True)
    clocks, passes = [clock, clock], max(0, free_moves - 1)
    while not position.is_over:
        mover = position.to_play
        if mover == 1 and passes > 0:
            passes -= 1
            move, position = _pass(position)
            decisions.append(Decision(move.action))
            try:
                for asked in (0, 1):
                    players[asked].observe(move)
            except PlayerError as error:
                return finish(f"{names[asked]}: {error}", asked, failed=True)
            continue
        began = time.perf_counter()
        try:
            decision = players[mover].choose(position, clocks[mover])
        except PlayerError as error:
            return finish(f"{names[mover]}: {error}", mover, failed=True)
        finally:
            seconds[mover] += time.perf_counter() - began
        if is_timed:
            spent = time.perf_counter() - began
            left = clocks[mover].after(spent)
            if left is None:
                return finish(
                    f"{names[mover]}: loses on time, {spent:.2f} s for a move with "
                    f"{clocks[mover].limit_seconds:.2f} s left",
                    mover,
                    failed=True,
                )
            clocks[mover] = left
        if decision.action == RESIGN:
            return finish(f"{names[mover]} resigns", mover)
        if not 0 <= decision.action < game.num_actions or not position.legal[decision.action]:
            return finish(f"{names[mover]}: illegal move {decision.action}", mover, failed=True)
        decisions.append(decision)
        move, position = Move(position, decision.action), position.play(decision.action)
        try:
            players[1 - mover].observe(move)
        except PlayerError as error:
            return finish(f"{names[1 - mover]}: {error}", 1 - mover, failed=True)
    return finish(PLAYED_OUT, None)


def _pass(position: Position) -> tuple[Move, Position]:
    """Return the pass in `position` of Go, and the position after it."""
    passing = position.game.num_actions - 1
    return Move(position, passing), position.play(passing)
