"""A thinker for tests that knows nothing: every legal move is as likely as another, and one visit
follows another down the list of moves.

Restrictions hold for the first move and for the pass that it expects in reply.
"""

import time

import numpy as np

from azero.players.player import Decision
from azero.players.thinking import Analysis, Limits, MoveInfo, ThinkOptions


class UniformThinker:
    """Visits legal moves in turn; `value` is what it thinks of every position, for the side to
    move, and `draw` how often it expects a draw; None is a network that does not say."""

    name = "uniform"

    def __init__(
        self,
        game,
        value: float = 0.0,
        seconds_per_visit: float = 0.0,
        *,
        expects_pass: bool = True,
        draw: float | None = None,
    ) -> None:
        self.game = game
        self.draw = draw
        self.value = value
        self.seconds_per_visit = seconds_per_visit
        self.expects_pass = expects_pass
        self.megabytes = 0
        self.num_resets = 0
        self.num_thoughts = 0

    def reset(self) -> None:
        self.num_resets += 1

    def limit_memory(self, megabytes: int) -> None:
        self.megabytes = megabytes

    def observe(self, move) -> None:
        pass

    def warm_up_in_steps(self, position):
        yield

    def choose(self, position, clock) -> Decision:
        return Decision(self.think(position, Limits(visits=8)).moves[0].action, self.value)

    def think(
        self,
        position,
        limits,
        options=ThinkOptions(),  # noqa: B008
    ) -> Analysis:
        self.num_thoughts += 1
        began = reported = time.perf_counter()
        actions = np.flatnonzero(
            position.legal
            if options.restriction is None
            else options.restriction.first_moves(position)
        ).tolist()
        visits = 0
        policy, _ = self.evaluate(position)
        passing = position.game.num_actions - 1
        expects_pass = self.expects_pass and (
            options.restriction is None
            or bool(options.restriction.mask(1 - position.to_play, 1)[passing])
        )

        def analysis() -> Analysis:
            counts = [
                (visits + len(actions) - 1 - index) // len(actions) for index in range(len(actions))
            ]
            moves = [
                MoveInfo(
                    action,
                    count,
                    self.value,
                    float(policy[action]),
                    self.value - 0.1,
                    (action, passing) if expects_pass else (action,),
                    (count, count - 1) if expects_pass else (count,),
                )
                for action, count in zip(actions, counts, strict=True)
                if count
            ]
            return Analysis(
                tuple(moves),
                self.value,
                visits + 1,
                visits,
                self.value,
                policy,
                time.perf_counter() - began,
            )

        bounds = [limit for limit in (limits.visits, limits.playouts) if limit is not None]
        while not position.is_over and all(visits < bound for bound in bounds):
            visits += 1
            time.sleep(self.seconds_per_visit if bounds or limits.seconds is not None else 0.001)
            if (
                options.on_progress is not None
                and time.perf_counter() - reported >= options.progress_seconds
            ):
                reported = time.perf_counter()
                options.on_progress(analysis())
            if options.should_stop() or (
                limits.seconds is not None and time.perf_counter() - began >= limits.seconds
            ):
                break
        result = analysis()
        if options.on_progress is not None:
            options.on_progress(result)
        return result

    def evaluate(self, position, symmetry=None):
        policy = position.legal.astype(np.float32)
        return policy / policy.sum(), self.value

    def estimate_points(self, position, actions=()):
        return None

    def estimate_draws(self, position, actions):
        return None if self.draw is None else [self.draw] * len(actions)
