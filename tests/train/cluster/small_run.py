"""A run of tic-tac-toe that is small enough for elastic tests, a pool that works in this process,
and what the replay must hold in the end."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from azero.data.replay import Replay
from azero.data.shard import read_shard, shard_path
from azero.experiment import load
from azero.games.game import Game
from azero.games.table import make
from azero.match.score import MatchResult
from azero.selfplay.targets import policy_room
from azero.selfplay.trajectory import Games, HostArray
from azero.settings import Config
from azero.train.cluster.elastic import Worker
from azero.train.loop import Challenge
from azero.train.settings import CheckpointConfig
from azero.types import PyTree


def small(iterations: int = 4) -> Config:
    """Tic-tac-toe with a tiny network; a dispatch of 4 moves, so that every game is played by two
    dispatches at least."""
    config = load("tictactoe").config
    return dataclasses.replace(
        config,
        network=dataclasses.replace(
            config.network, blocks=1, filters=8, value_hidden=8, convolution="xla"
        ),
        search=dataclasses.replace(config.search, num_simulations=4, max_considered=4),
        selfplay=dataclasses.replace(
            config.selfplay,
            num_games=16,
            moves_per_dispatch=4,
            dispatches_per_iteration=2,
            temperature_moves=3,
        ),
        replay=dataclasses.replace(config.replay, min_positions=1, symmetries=False),
        learner=dataclasses.replace(
            config.learner, batch_size=32, steps_per_iteration=8, learning_rate=((0, 1e-2),)
        ),
        evaluation=dataclasses.replace(
            config.evaluation, every=0, games=16, gate_games=16, num_simulations=2
        ),
        checkpoint=CheckpointConfig(every=1, keep=2),
        run=dataclasses.replace(config.run, iterations=iterations),
    )


def with_evaluation(config: Config, every: int, gate: bool, win_rate: float = 0.55) -> Config:
    return dataclasses.replace(
        config,
        evaluation=dataclasses.replace(
            config.evaluation, every=every, gate=gate, gate_win_rate=win_rate
        ),
    )


class LocalWorkerPool:
    """Workers of this process, each in its turn. A match ends only when somebody waits for it."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self.dispatches = 0
        self.orders: tuple[int, PyTree, float, int] | None = None
        self.challenges: list[Challenge] = []
        self.open: Challenge | None = None

    def publish(self, iteration: int, variables: PyTree, threshold: float, done: int) -> None:
        self.orders = (iteration, jax.device_get(variables), threshold, done)

    def receive(self, timeout: float) -> Games | None:
        worker = self.workers[self.dispatches % len(self.workers)]
        self.dispatches += 1
        assert self.orders is not None
        games = worker.play(*self.orders)
        return games if len(games.length) else None

    def start_match(self, challenge: Challenge) -> None:
        assert self.open is None, "one match at a time"
        self.challenges.append(challenge)
        self.open = challenge._replace(
            current=jax.device_get(challenge.current), opponent=jax.device_get(challenge.opponent)
        )

    def receive_result(self, timeout: float) -> MatchResult | None:
        if timeout == 0.0 or self.open is None:
            return None
        challenge, self.open = self.open, None
        return self.workers[0].match(challenge.iteration, challenge.current, challenge.opponent)

    def describe(self) -> str:
        return f"{len(self.workers)} of {len(self.workers)} workers"

    def take_messages(self) -> list[str]:
        return ["a message of the pool"]


def stored(replay: Replay, game: Game) -> tuple[HostArray, HostArray]:
    """Return the rows and the games of all shards of a tic-tac-toe run, oldest first, their
    checksums verified."""
    cursor = replay.state_dict()
    shards = [
        read_shard(
            shard_path(replay.directory, 0, index),
            None,
            game.name,
            game.frame_words,
            policy_room(game),
        )
        for index in range(cursor["first_shard"], cursor["next_shard"])
    ]
    return np.concatenate([positions.rows for positions, _ in shards]), np.concatenate(
        [games for _, games in shards]
    )


def check_whole(rows: HostArray, games: HostArray) -> None:
    """Check that every game leads by its moves, position by position, from the start to an end that
    has its result, and that none is there twice."""
    game = make("tictactoe")
    step, pack, over, rewards = (
        jax.jit(jax.vmap(call))
        for call in (game.step, game.pack_frame, game.is_terminal, game.rewards)
    )
    length = games["length"]
    first = np.cumsum(length) - length
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (len(games), *np.shape(leaf))), game.init()
    )
    for ply in range(length.max()):
        on = ply < length
        at = rows[first[on] + ply]
        assert (at["ply"] == ply).all()
        assert not np.asarray(over(states))[on].any(), "a game goes on after its end"
        np.testing.assert_array_equal(at["frame"], np.asarray(pack(states))[on])
        action = np.zeros(len(games), np.int32)
        action[on] = at["action"]
        stepped = step(states, action)
        states = jax.tree.map(
            lambda new, old, on=on: np.where(on.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old),
            stepped,
            states,
        )
    assert np.asarray(over(states)).all(), "a game that is not finished"
    np.testing.assert_array_equal(games["result"], rewards(states))
    assert length.sum() == len(rows)
    assert (np.diff(games["number"]) == 1).all()
