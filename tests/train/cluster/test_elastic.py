"""The elastic loop and its workers, without Ray: whole games with the networks that played them,
the pace, matches on the side, stopping, going on."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from small_run import LocalWorkerPool, check_whole, small, stored, with_evaluation
from small_runs import quiet_run

from azero import mesh as mesh_lib
from azero.data.shard import pack_positions
from azero.experiment import load
from azero.selfplay.trajectory import Games
from azero.settings import Config
from azero.train.cluster.elastic import Elastic, Worker
from azero.train.estimate import positions_per_iteration
from azero.train.events import Evaluated, Event, IterationDone, MatchSkipped
from azero.train.loop import Loop, RunState
from azero.train.main import main
from azero.train.selfplay_run import WorkerBackend

pytestmark = pytest.mark.usefixtures("shared_programs")


@pytest.fixture(scope="module")
def workers() -> list[Worker]:
    """Workers for all tests; their games run on from test to test, as they do from iteration to
    iteration."""
    config = with_evaluation(
        small(), every=2, gate=True
    )  # with matches, for the tests that have them
    return [Worker(config, None, jax.default_backend(), 0, number) for number in range(2)]


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    return Loop(small(), mesh_lib.make_mesh(), tmp_path_factory.mktemp("run"))


def other(loop: Loop, config: Config) -> Loop:
    """The same compiled programs under settings that they do not depend on."""
    twin: Any = object.__new__(Loop)
    twin.__dict__.update(loop.__dict__, config=config)
    programs: Any = object.__new__(type(loop.programs))
    programs.__dict__.update(loop.programs.__dict__, config=config)
    twin.programs = programs
    return twin


def fresh(loop: Loop, workdir: Path) -> RunState:
    loop.workdir = workdir
    return loop.make_state(loop.fresh_arrays())


def iterations(elastic: Elastic, state: RunState, count: int) -> list[Event]:
    return [event for _ in range(count) for event in elastic.iterate(state)]


def never() -> bool:
    return False


def test_a_worker_sends_whole_games_and_the_networks_that_played_them(loop, workers):
    variables = jax.device_get(loop.learner.init(jax.random.key(0)).variables)
    collected = [workers[0].play(iteration, variables, -2.0, iteration) for iteration in range(6)]
    for iteration, games in enumerate(collected):
        assert set(games.network[:, 1].tolist()) <= {iteration}
        # Tic-tac-toe takes 5 moves or more, a dispatch is 4: no game is one network's alone.
        assert (games.network[:, 0] < iteration).all()
        assert (games.network[:, 0] >= iteration - 2).all(), (
            "nine moves lie in three dispatches at most"
        )
    columns = [np.concatenate(column) for column in zip(*collected, strict=True)]
    whole = Games(*columns)
    table = np.zeros(
        len(whole.length), [("number", "<i8"), ("length", "<i4"), ("result", "<f4", (2,))]
    )
    for name in table.dtype.names or ():
        table[name] = getattr(whole, name)
    check_whole(pack_positions(whole, 9).rows, table)


def test_draws_belong_to_the_worker(loop, workers):
    variables = jax.device_get(loop.learner.init(jax.random.key(0)).variables)
    twins = [Worker(small(), None, jax.default_backend(), 3, number) for number in (7, 7)]
    first, again = ([twin.play(0, variables, -2.0, 0) for _ in range(3)] for twin in twins)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.action, two.action)
    assert not np.array_equal(
        np.concatenate([games.action for games in first]),
        workers[1].play(0, variables, -2.0, 0).action,
    )


def test_the_pace_is_that_of_the_one_program(loop, workers, tmp_path):
    config = loop.config
    state = fresh(loop, tmp_path)
    pool = LocalWorkerPool(workers)
    events = iterations(Elastic(loop, pool, never), state, 5)
    done = [event for event in events if isinstance(event, IterationDone)]
    assert [event.steps for event in done] == [
        number * config.learner.steps_per_iteration for number in range(1, 6)
    ]
    assert sum(isinstance(event, dict) and "loss" in event for event in events) == 5
    assert int(state.train.step) == 5 * config.learner.steps_per_iteration
    # Never ahead of self-play, and behind it by less than what came last (all slots' games may end
    # at once).
    quota = positions_per_iteration(loop.config)
    assert quota == 16 * 4 * 2
    for number, event in enumerate(done, 1):
        assert number * quota <= event.positions < number * quota + 16 * 9
    assert all("a message of the pool" in event.warnings for event in done)
    rows, games = stored(state.replay, loop.game)
    check_whole(rows, games)
    assert games["number"].tolist() == list(range(state.games))
    assert len(rows) == state.positions
    assert games["network"][:, 1].max() == 4, (
        "the last iteration's games are those of the network before it"
    )
    assert done[-1].tally.ages > 0


def test_positions_are_not_seen_too_often(loop, workers, tmp_path):
    bounded = dataclasses.replace(
        loop.config, learner=dataclasses.replace(loop.config.learner, max_samples_per_position=1.0)
    )
    state = fresh(other(loop, bounded), tmp_path)
    iterations(Elastic(other(loop, bounded), LocalWorkerPool(workers), never), state, 3)
    assert (
        int(state.train.step)
        == 3 * positions_per_iteration(loop.config) // loop.config.learner.batch_size
    )


def test_a_request_to_stop_ends_the_iteration_with_the_games_that_have_come(
    loop, workers, tmp_path
):
    state = fresh(loop, tmp_path)
    pool = LocalWorkerPool(workers)
    iterations(Elastic(loop, pool, never), state, 1)
    before = state.positions
    seen = pool.dispatches
    elastic = Elastic(loop, pool, lambda: pool.dispatches > seen)
    done = [event for event in elastic.iterate(state) if isinstance(event, IterationDone)]
    assert len(done) == 1
    new = state.positions - before
    assert 0 < new < positions_per_iteration(loop.config)
    assert int(state.train.step) == 8 + 8 * new // positions_per_iteration(loop.config)


def test_a_request_to_stop_before_any_game_makes_no_iteration_without_games(
    loop, workers, tmp_path
):
    state = fresh(loop, tmp_path)
    iterations(Elastic(loop, LocalWorkerPool(workers), lambda: True), state, 1)
    assert 0 < state.positions < positions_per_iteration(loop.config)
    assert (state.iteration, state.games) == (1, state.replay.count_window_games())


@pytest.mark.parametrize("win_rate", [0.0, 0.99])
def test_the_gate_decides_while_learning_goes_on(win_rate, loop, workers, tmp_path, monkeypatch):
    asked: list[int] = []
    for worker in workers:
        find = worker._programs.selfplay_at
        monkeypatch.setattr(
            worker._programs, "selfplay_at", lambda n, find=find: (asked.append(n), find(n))[1]
        )
    gated = other(loop, with_evaluation(loop.config, every=2, gate=True, win_rate=win_rate))
    gated = other(
        gated,
        dataclasses.replace(gated.config, run=dataclasses.replace(gated.config.run, iterations=5)),
    )
    state = fresh(gated, tmp_path)
    pool = LocalWorkerPool(workers)
    elastic = Elastic(gated, pool, never)
    when: list[tuple[int, Evaluated]] = []
    published = []
    for _ in range(5):
        when += [
            (state.iteration + 1, event)
            for event in elastic.iterate(state)
            if isinstance(event, Evaluated)
        ]
        assert pool.orders is not None
        published.append(pool.orders[0])
    # The match of iteration 2 is waited for where that of iteration 4 is due, and that one at the
    # end of the run.
    assert [(now, event.iteration) for now, event in when] == [(4, 2), (5, 4)]
    promoted = [event.iteration for _, event in when if event.promoted]
    assert state.best_iteration == max([0, *promoted])
    assert published == [0, 0, 0, 0, 2 if 2 in promoted else 0]
    assert [challenge.opponent_iteration for challenge in pool.challenges] == [
        0,
        2 if 2 in promoted else 0,
    ]
    assert set(asked) == set(range(5)), "simulations follow the run, not the best player"
    if win_rate == 0.99:
        assert not promoted
    _, games = stored(state.replay, loop.game)
    assert set(games["network"][:, 1].tolist()) == set(published)


def test_no_match_is_started_before_anything_is_learned(loop, workers, tmp_path):
    gated = other(loop, with_evaluation(loop.config, every=2, gate=True))
    gated = other(
        gated,
        dataclasses.replace(
            gated.config,
            learner=dataclasses.replace(gated.config.learner, max_samples_per_position=1e-9),
        ),
    )
    state = fresh(gated, tmp_path)
    pool = LocalWorkerPool(workers)
    events = iterations(Elastic(gated, pool, never), state, 2)
    assert [event for event in events if isinstance(event, MatchSkipped)] == [
        MatchSkipped(2, 0, "nothing has been learned yet")
    ]
    assert not pool.challenges


def test_the_one_program_goes_on_with_an_elastic_run_and_the_other_way_round(
    workers, tmp_path, without_reports
):
    """Games in flight of the one program wait in the checkpoint while workers play, and are ended
    after it."""

    def turn(iterations: int, backend: WorkerBackend | None) -> None:
        config = dataclasses.replace(
            small(iterations), checkpoint=dataclasses.replace(small().checkpoint, keep=1)
        )
        assert quiet_run("tictactoe", config, tmp_path, backend=backend) == 0

    @contextlib.contextmanager
    def elastic(
        loop: Loop, state: RunState, stop: object
    ) -> Iterator[Callable[[RunState], Iterator[Event]]]:
        yield Elastic(loop, LocalWorkerPool(workers), never).iterate
        states.append((loop, state))

    states: list[tuple[Loop, RunState]] = []
    turn(1, None)
    turn(2, elastic)
    turn(3, None)
    turn(4, elastic)
    loop, state = states[-1]
    assert (state.iteration, int(state.train.step)) == (4, 32)
    rows, games = stored(state.replay, loop.game)
    check_whole(rows, games)
    assert games["number"].tolist() == list(range(state.games))


def test_without_ray_one_line_says_what_to_install(monkeypatch, capsys, tmp_path):
    for name in [
        name
        for name in sys.modules
        if name.split(".")[0] == "ray"
        or name in ("azero.train.cluster.ray", "azero.train.cluster.workers")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit) as ended:
        main(load("tictactoe"), ["--cluster", "ray", "--workdir", str(tmp_path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "azero: --cluster ray needs Ray: pip install 'azero[ray]'\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cluster", "ray", "--workers", "0"], "--workers is at least 1, not 0"),
        (["--workers", "4", "--worker-gpus", "1"], "--workers, --worker-gpus: only with --cluster"),
    ],
)
def test_an_error_in_the_flags_is_one_line(flags, message, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(load("tictactoe"), [*flags, "--workdir", str(tmp_path)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
