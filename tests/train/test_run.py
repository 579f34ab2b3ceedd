"""Runs: every experiment runs, is resumed bit for bit, survives kill -9 and SIGTERM, and says in
one line what is wrong."""

import dataclasses
import functools
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest
from policy_words import split_words
from rich.console import Console
from small_runs import digests, quiet_run, tictactoe, tiny

from azero.checkpoint import Checkpointer, CheckpointError, load_variables
from azero.commands.accuracy import evaluate_accuracy
from azero.data.directory_lock import LOCK, hold
from azero.data.files import read_arrays
from azero.data.records.requests import AccuracyRequest
from azero.data.rows import read_rows
from azero.data.run_files import write_config
from azero.data.shard import list_shards, read_replay
from azero.distributed import EXIT_INTERRUPTED
from azero.evaluate.joseki import count_openings
from azero.experiment import NAMES, load
from azero.games.go.sgf import read_games
from azero.mesh import batch_sharded, make_mesh, put
from azero.networks.settings import Rollout2016Config, Value2016Config
from azero.report.game_records import export_games
from azero.search.settings import PuctConfig
from azero.settings import Config
from azero.train.driver import run_experiment
from azero.train.going_back import WENT_BACK
from azero.train.loop import REPLAY, Loop, why_nothing_is_learned
from azero.train.main import main
from azero.train.programs import Programs
from azero.train.resolving import resolve_settings
from azero.train.saving import restore_selfplay, save_selfplay
from azero.train.selfplay_run import _warn_of_gate, make_selfplay_stage
from azero.train.settings import CheckpointConfig, RunConfig

pytestmark = pytest.mark.usefixtures("shared_programs", "two_devices")
KILLS = int(os.environ.get("AZERO_TEST_KILLS", "3"))
"""How often the run is killed; 20 for the full check."""
ITERATIONS = 6 + 2 * KILLS
"""Of the run that is killed: two from one kill to the next, and some after the last one."""


LIKE_OTHERS = {
    "go19_alphazero",
    "go19_40b",
    "go9",
    "go9_gumbel",
    "go9_master",
    "go5_efficient",
    "go7_efficient",
    "go7",
    "go5_gated",
    "chess_endings",
    "minichess",
    "minichess_efficient",
    "animal_shogi_efficient",
    "shogi",
    "shogi_efficient",
}
"""Experiments whose programs are those of another one with other numbers or rules: go19, go5,
go9_efficient, chess, animal_shogi, chess_efficient."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LIKE_OTHERS else [])
        for name in NAMES
        if load(name).learns_from == "selfplay"
    ],
)
def test_two_iterations_of_every_experiment(name, tmp_path):
    config = load(name).config
    if config.game.name == "go" and config.game.size == (19,):
        # A whole game of 19x19 is long; six moves are enough for the shapes, and for games to end.
        config = dataclasses.replace(config, game=dataclasses.replace(config.game, max_moves=6))
    if name != "go5":
        # Matches compile for long; one experiment of Go shows them, and tic-tac-toe below plays
        # with and without the gate.
        config = dataclasses.replace(
            config, evaluation=dataclasses.replace(config.evaluation, gate=False, every=0)
        )
    assert quiet_run(name, tiny(config), tmp_path) == 0
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert list(digests(tmp_path)) == [1, 2]
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("gate", [False, True])
def test_k_and_k_iterations_equal_2k_bit_for_bit(gate, tmp_path, without_reports):
    config = tictactoe(iterations=6)
    config = dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, gate=gate)
    )
    half = dataclasses.replace(config, run=RunConfig(iterations=3))
    quiet_run("tictactoe", config, tmp_path / "whole")
    quiet_run("tictactoe", half, tmp_path / "parts")
    early = digests(tmp_path / "parts")
    assert list(early) == [1, 2, 3]
    quiet_run("tictactoe", config, tmp_path / "parts")
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
    quiet_run(
        "tictactoe",
        dataclasses.replace(config, run=RunConfig(iterations=1, seed=1)),
        tmp_path / "other",
    )
    assert digests(tmp_path / "other")[1] != early[1]


def test_kept_trees_archive_and_resigned_games_are_resumed(tmp_path, without_reports):
    """Trees end with an iteration, so that checkpoints need none of them; the rest is saved."""
    config = tictactoe(iterations=3)
    selfplay = dataclasses.replace(
        config.selfplay,
        num_games=8,
        search_batch=4,
        resign_disabled=0.5,
        archive="searches",
        played_on_games=8,
        played_on_simulations=1,
    )
    search = PuctConfig(num_simulations=4, reuse_tree=True)
    config = dataclasses.replace(config, search=search, selfplay=selfplay)
    for iterations in (1, 3):
        part = dataclasses.replace(config, run=RunConfig(iterations=iterations))
        assert quiet_run("tictactoe", part, tmp_path / "parts") == 0
    assert quiet_run("tictactoe", config, tmp_path / "whole") == 0
    assert digests(tmp_path / "parts")[3] == digests(tmp_path / "whole")[3]
    # What is counted includes the games played on: 16 games, half with 4 and half with 1 simulation.
    *_, row = read_rows(tmp_path / "whole" / "metrics.jsonl")
    moves = selfplay.moves_per_dispatch * selfplay.dispatches_per_iteration
    assert row["positions"] == 3 * 16 * moves >= row["window_positions"] > 3 * 8 * moves
    assert row["simulations_per_second"] == pytest.approx(2.5 * row["positions_per_second"])


def test_the_devices_play_on_while_the_host_stores_games(tmp_path, monkeypatch):
    """Each dispatch but the first has been started when the games of the one before are stored."""
    config = tictactoe()
    selfplay = dataclasses.replace(config.selfplay, dispatches_per_iteration=3)
    loop = Loop(dataclasses.replace(config, selfplay=selfplay), make_mesh(), tmp_path)
    order = []
    programs = loop.programs.selfplay_at(0)

    def play(*arguments):
        order.append("play")
        return programs.play(*arguments)

    def add_games(self, *arguments, whole=Loop.add_games):
        order.append("store")
        return whole(self, *arguments)

    monkeypatch.setattr(
        loop.programs, "selfplay_at", lambda iteration: programs._replace(play=play)
    )
    monkeypatch.setattr(Loop, "add_games", add_games)
    state = loop.make_state(loop.fresh_arrays())
    for _ in loop.iterate(state):
        pass
    assert order == ["play", "play", "store", "play", "store", "store"]
    assert state.positions == 3 * selfplay.num_games * selfplay.moves_per_dispatch


@pytest.mark.parametrize(
    ("before", "now", "slots"),
    [
        (2, 1, [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 10, 11]),
        (1, 2, [0, 1, 2, 3, 8, 9, 4, 5, 6, 7, 10, 11]),
        (2, 2, list(range(12))),
    ],
)
def test_games_played_on_remain_such_on_another_number_of_devices(
    before, now, slots, tmp_path, monkeypatch
):
    """On each device their slots are the last third."""
    config = tictactoe()
    selfplay = dataclasses.replace(config.selfplay, num_games=8, played_on_games=4)
    config = dataclasses.replace(config, selfplay=selfplay)

    def make_loop(devices):
        monkeypatch.setattr(jax, "device_count", lambda: devices)
        return Loop(config, make_mesh(jax.devices()[:devices]), tmp_path)

    loop, checkpointer = make_loop(before), Checkpointer(tmp_path, config)
    state, _ = restore_selfplay(checkpointer, loop)
    numbers = np.arange(12, dtype=np.int32)
    state.carry = state.carry._replace(ply=put(numbers, batch_sharded(loop.mesh)))
    state.assembler.load_state_dict(state.assembler.state_dict() | {"length": numbers})
    state.iteration = 1
    save_selfplay(checkpointer, state)
    checkpointer.close()
    loop, checkpointer = make_loop(now), Checkpointer(tmp_path, config)
    state, _ = restore_selfplay(checkpointer, loop)
    checkpointer.close()
    assert np.asarray(state.carry.ply).tolist() == slots
    assert state.assembler.state_dict()["length"].tolist() == slots
    assert state.carry.ply.sharding.num_devices == now


def test_checkpoints_kept_for_good_are_saved_whatever_the_other_interval_is(
    tmp_path, without_reports
):
    config = tictactoe(iterations=4)
    config = dataclasses.replace(config, checkpoint=CheckpointConfig(3, keep=1, keep_every=2))
    assert quiet_run("tictactoe", config, tmp_path) == 0
    assert list(digests(tmp_path)) == [2, 4]


def test_simulations_grow_over_a_run(tmp_path, without_reports):
    config = tictactoe()
    search = PuctConfig(num_simulations=4)
    selfplay = dataclasses.replace(config.selfplay, simulations=((0, 2), (1, 4)))
    config = dataclasses.replace(config, search=search, selfplay=selfplay)
    assert quiet_run("tictactoe", config, tmp_path) == 0
    visits = {}
    for path in (tmp_path / "replay").glob("*.shard"):
        shard, _ = read_arrays(path)
        for row in shard["rows"]:
            words = shard["policy"][row["policy_start"] :][: row["policy_count"]]
            visits.setdefault(int(path.stem[-1]), set()).add(int(split_words(words)[1].sum()))
    assert visits == {0: {2}, 1: {2, 4}, 2: {2, 4}}, "games run on from one iteration to the next"
    first, second = read_rows(tmp_path / "metrics.jsonl")
    ratios = [
        row["simulations_per_second"] / row["positions_per_second"] for row in (first, second)
    ]
    assert ratios == pytest.approx([2, 4])
    for too_many in ({"simulations": ((0, 2), (1, 8))}, {"fast_simulations": 8}):
        other = dataclasses.replace(config, selfplay=dataclasses.replace(selfplay, **too_many))
        with pytest.raises(ValueError, match=r"8 is above search.num-simulations = 4"):
            quiet_run("tictactoe", other, tmp_path / "other")


def gated(every: int = 2, win_rate: float = 0.55, games: int = 10) -> Config:
    """Tic-tac-toe with AlphaGo Zero's gate and a number of games that does not fill the devices."""
    config = tictactoe(iterations=4)
    evaluation = dataclasses.replace(
        config.evaluation, every=every, gate=True, gate_games=games, gate_win_rate=win_rate
    )
    return dataclasses.replace(
        config, evaluation=evaluation, checkpoint=CheckpointConfig(every=4, keep=3)
    )


@pytest.mark.parametrize(
    ("every", "iterations", "warns"), [(5, 4, 1), (4, 4, 0), (1, 1, 1), (1, 2, 0)]
)
def test_a_run_that_ends_before_its_gates_first_match_says_so(every, iterations, warns):
    run = dataclasses.replace(gated().run, iterations=iterations)
    config = dataclasses.replace(gated(every), run=run)
    assert len(_warn_of_gate(config)) == warns
    ungated = dataclasses.replace(config.evaluation, gate=False)
    assert not _warn_of_gate(dataclasses.replace(config, evaluation=ungated))


def events(workdir: Path) -> list[dict]:
    return read_rows(workdir / "events.jsonl")


def test_a_gate_of_a_number_of_games_that_does_not_divide_is_passed(tmp_path, without_reports):
    assert quiet_run("tictactoe", gated(win_rate=0.0), tmp_path) == 0
    rows = [row for row in events(tmp_path) if row["kind"] == "evaluation"]
    assert [(row["iteration"], row["opponent_iteration"], row["passed"]) for row in rows] == [
        (2, 0, True),
        (4, 2, True),
    ]
    assert all((sum(row["first"]), sum(row["second"])) == (5, 5) for row in rows)


@pytest.mark.parametrize("devices", [16, pytest.param(32, marks=pytest.mark.slow)])
def test_a_gated_run_on_many_devices_passes_its_gate(devices, tmp_path):
    flags = [
        "--run.iterations",
        "2",
        "--evaluation.gate",
        "--evaluation.gate-games",
        "10",
        "--evaluation.gate-win-rate",
        "0",
        "--evaluation.every",
        "2",
    ]
    flags += [
        "--evaluation.num-simulations",
        "2",
        "--selfplay.num-games",
        str(devices),
        "--learner.batch-size",
        str(devices),
        "--checkpoint.every",
        "2",
    ]
    xla = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    process = start(tmp_path, *flags, environment={"XLA_FLAGS": xla, "JAX_NUM_CPU_DEVICES": ""})
    output = finish(process)
    assert f"devices: {devices} x cpu" in output
    (row,) = [row for row in events(tmp_path) if row["kind"] == "evaluation"]
    assert (row["iteration"], sum(row["first"]), sum(row["second"]), row["passed"]) == (
        2,
        5,
        5,
        True,
    )


def test_the_first_checkpoint_is_written_before_the_first_match(
    tmp_path, monkeypatch, without_reports
):
    """A match that ends the run leaves a checkpoint, and from there the run ends as if nothing had
    happened."""
    quiet_run("tictactoe", gated(), tmp_path / "calm")

    def end(*arguments):
        raise RuntimeError("the devices are gone")

    with monkeypatch.context() as patch:
        patch.setattr(Programs, "match", end)
        with pytest.raises(RuntimeError, match="the devices are gone"):
            quiet_run("tictactoe", gated(), tmp_path / "hit")
    assert list(digests(tmp_path / "hit")) == [1]
    quiet_run("tictactoe", gated(), tmp_path / "hit")
    assert digests(tmp_path / "hit") == digests(tmp_path / "calm")
    assert [
        row for row in map(without_time, events(tmp_path / "hit")) if row["kind"] == "evaluation"
    ] == [
        row for row in map(without_time, events(tmp_path / "calm")) if row["kind"] == "evaluation"
    ]


def test_the_gate_and_matches_may_begin_and_end_in_a_run(tmp_path, without_reports):
    config = gated(every=1, win_rate=0.0)
    off, ungated = {"gate": False, "games": 0}, {"gate": False, "games": 10}
    for iterations, changes in enumerate([off, {}, ungated, off, {**ungated, "every": 0}, ungated]):
        changed = dataclasses.replace(
            config,
            evaluation=dataclasses.replace(config.evaluation, **changes),
            run=RunConfig(iterations=iterations + 1),
        )
        assert quiet_run("tictactoe", changed, tmp_path) == 0
    rows = [row for row in events(tmp_path) if row["kind"] == "evaluation"]
    found = [(row["iteration"], row["opponent_iteration"], row["passed"]) for row in rows]
    assert found == [(2, 1, True), (3, 2, None), (6, 5, None)]


GAMES_5X5 = """(;SZ[5]KM[7.5]RE[B+R];B[cc];W[bb];B[dd];W[cb];B[db];W[bc])
(;SZ[5]KM[2.5]RE[W+R];B[dd];W[bb];B[cc];W[cb];B[bc];W[ab];B[ac])
(;SZ[9]KM[7]RE[B+R];B[ee])
"""


def test_a_run_predicts_recorded_games_and_counts_its_openings(tmp_path, without_reports):
    records = tmp_path / "games.sgf"
    records.write_text(GAMES_5X5)
    config = tiny(load("go5").config, 4)
    config = dataclasses.replace(
        config,
        selfplay=dataclasses.replace(config.selfplay, dispatches_per_iteration=8),
        evaluation=dataclasses.replace(config.evaluation, every=3, games=0, records=str(records)),
    )
    run = tmp_path / "run"
    assert quiet_run("go5", config, run) == 0
    rows = read_rows(run / "metrics.jsonl")
    assert ["held_out_value_error" in row for row in rows] == [False, False, True, True]
    # What the command says of the last checkpoint.
    (found,) = evaluate_accuracy(AccuracyRequest((str(run),), records, json=True)).values()
    assert (found[0].games, found[0].positions) == (2, 13)
    for name, value in (("top1", found[0].top1), ("held_out_policy_loss", found[0].policy_loss)):
        assert rows[-1][name] == pytest.approx(value.value, rel=1e-5)
    # The openings are those of the games in the replay.
    export_games(run, tmp_path / "selfplay.sgf")
    games = [game for game in read_games(tmp_path / "selfplay.sgf") if len(game.moves) > 2]
    counted = Counter[str]()
    for before, row in itertools.pairwise([{"games": 0}, *rows]):
        ended = row["games"] - before["games"]
        assert row.get("openings", {}) == pytest.approx(
            {
                name: count / ended
                for name, count in count_openings(games[before["games"] : row["games"]])[1].items()
            },
            abs=1e-4,
        )
        counted.update(row.get("openings", {}).keys())
    assert counted
    records.unlink()
    with pytest.raises(ValueError, match=r"games\.sgf"):
        quiet_run("go5", dataclasses.replace(config, run=RunConfig(iterations=5)), run)
    with pytest.raises(ValueError, match=r"set evaluation\.every"):
        dataclasses.replace(config.evaluation, every=0)


def without_time(row: dict) -> dict:
    return {key: value for key, value in row.items() if key != "time"}


def test_no_match_is_played_before_anything_is_learned_or_between_equal_networks(
    tmp_path, without_reports
):
    """The window is filled in the third iteration, from which on nothing is learned either: a rate
    of samples so low that it makes no step."""
    config = gated(every=1)
    config = dataclasses.replace(
        config, replay=dataclasses.replace(config.replay, min_positions=10_000)
    )
    quiet_run("tictactoe", config, tmp_path / "waits")
    assert [
        (row["iteration"], row["reason"])
        for row in events(tmp_path / "waits")
        if row["kind"] != "checkpoint"
    ] == [(number, "nothing has been learned yet") for number in (2, 3, 4)]
    # The network that passed at iteration 2 meets itself: no new position may be looked at any
    # more.
    config = gated(every=1, win_rate=0.0)
    quiet_run(
        "tictactoe", dataclasses.replace(config, run=RunConfig(iterations=2)), tmp_path / "stays"
    )
    stays = dataclasses.replace(
        config, learner=dataclasses.replace(config.learner, max_samples_per_position=1e-9)
    )
    quiet_run("tictactoe", stays, tmp_path / "stays")
    assert [
        (row["kind"], row["iteration"])
        for row in events(tmp_path / "stays")
        if row["kind"] != "checkpoint"
    ] == [("evaluation", 2), ("match skipped", 3), ("match skipped", 4)]
    assert events(tmp_path / "stays")[-2]["reason"] == "both are the same network"


def test_a_run_that_cannot_learn_says_why():
    config = load("tictactoe").config
    assert why_nothing_is_learned(config, 4000, 512) == []
    assert why_nothing_is_learned(config, 3999, 511) == []
    (line,) = why_nothing_is_learned(config, 4000, 511)
    assert "the window is full with 511 positions of 4,000 games, fewer than" in line
    learner = dataclasses.replace(config.learner, max_samples_per_position=1e-3)
    (line,) = why_nothing_is_learned(dataclasses.replace(config, learner=learner), 10, 90)
    assert "max-samples-per-position 0.001 of the" in line and "learner.batch-size 128" in line


def test_a_match_that_would_be_one_game_many_times_is_refused_before_the_first_iteration(tmp_path):
    config = gated()
    config = dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, average_symmetries=True)
    )
    with pytest.raises(
        ValueError,
        match=r"evaluation.average-symmetries and evaluation.temperature-moves 0, all 10 games of "
        r"a match would be the same: .* \(--evaluation.no-gate --evaluation.every 0\)",
    ):
        quiet_run("tictactoe", config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_iteration_in_which_no_game_ends_has_no_shares_of_games(tmp_path, without_reports):
    config = tictactoe(iterations=1)
    short = dataclasses.replace(
        config.selfplay, moves_per_dispatch=2, dispatches_per_iteration=1, resign_min_games=50
    )
    assert quiet_run("tictactoe", dataclasses.replace(config, selfplay=short), tmp_path) == 0
    (row,) = read_rows(tmp_path / "metrics.jsonl")
    names = ("first_wins", "draws", "resigned", "game_length", "network_age")
    assert row["games"] == 0 and {row[name] for name in names} == {None}


def test_a_gate_without_matches_is_refused_because_only_the_first_network_would_ever_play(
    tmp_path,
):
    config = gated()
    config = dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, every=0))
    with pytest.raises(ValueError, match=r"evaluation.every 0 .*--evaluation.no-gate"):
        quiet_run("tictactoe", config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_matches_begin_with_random_moves_that_both_networks_play_from_both_sides():
    """A network against itself without anything else that is random: of every pair of games either
    both are won by the same colour or both are drawn."""
    config = gated()
    config = dataclasses.replace(
        config,
        evaluation=dataclasses.replace(
            config.evaluation, average_symmetries=True, random_plies=3, gate_games=24
        ),
    )
    programs = Programs(config, make_mesh(jax.devices()[:1]))
    variables = programs.network.init(jax.random.key(0))
    results = [programs.match(variables, variables, iteration) for iteration in (1, 2, 1)]
    for result in results:
        assert result.total.games == 24
        assert result.first.wins == result.second.losses and result.first.wins > 0
        assert result.first.losses == result.second.wins and result.first.losses > 0
    assert results[0] == results[2] != results[1]


def test_resignation_without_games_to_calibrate_it_is_refused(tmp_path):
    config = tictactoe()
    selfplay = dataclasses.replace(config.selfplay, resign_disabled=0.0)
    with pytest.raises(ValueError, match=r"resign-disabled 0: no game .*selfplay.no-resign"):
        quiet_run("tictactoe", dataclasses.replace(config, selfplay=selfplay), tmp_path)


def test_resignation_of_games_whose_rewards_count_points_is_refused(tmp_path):
    config = tiny(load("go5").config)
    selfplay = dataclasses.replace(config.selfplay, resign=True)
    with pytest.raises(ValueError, match=r"margin-weight 0.5 with selfplay.resign: .*no-resign"):
        quiet_run("go5", dataclasses.replace(config, selfplay=selfplay), tmp_path)


def test_a_network_of_half_the_outputs_is_refused_before_the_first_iteration(tmp_path):
    config = dataclasses.replace(tictactoe(), network=Value2016Config())
    with pytest.raises(ValueError, match=r"network.name value2016 has no policy or no value"):
        quiet_run("tictactoe", config, tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_random_moves_that_end_every_game_are_refused_before_the_first_iteration(tmp_path):
    config = gated()
    config = dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, random_plies=9)
    )
    with pytest.raises(ValueError, match="random-plies 9: every such game of tictactoe was over"):
        quiet_run("tictactoe", config, tmp_path)
    assert tmp_path.exists(), "it was there before"
    assert not (tmp_path / "metrics.jsonl").exists()


def start(
    workdir: Path, *extra: str, environment: dict[str, str] | None = None
) -> subprocess.Popen:
    config = tiny(load("tictactoe").config)
    flags = {
        "network.blocks": config.network.blocks,
        "network.filters": config.network.filters,
        "network.convolution": "xla",
        "search.num-simulations": 2,
        "selfplay.num-games": 8,
        "selfplay.moves-per-dispatch": 4,
        "replay.min-positions": 1,
        "learner.batch-size": 8,
        "learner.steps-per-iteration": 2,
        "evaluation.every": 0,
        "checkpoint.every": 1,
        "run.iterations": ITERATIONS,
    }
    command = [sys.executable, "-m", "azero.experiments.tictactoe", "--workdir", str(workdir)]
    command += [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": "1",
        **(environment or {}),
    }
    environment = {name: value for name, value in environment.items() if value}
    return subprocess.Popen(
        [*command, *extra],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def num_rows(workdir: Path) -> int:
    path = workdir / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def has_rows(workdir: Path, count: int) -> bool:
    return num_rows(workdir) >= count


def finish(process: subprocess.Popen) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def wait_for(condition, process: subprocess.Popen, seconds: float = 120.0) -> None:
    """Wait until `condition` holds while the process runs."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_run_killed_at_random_moments_ends_like_one_never_killed(tmp_path, seed):
    finish(start(tmp_path / "calm"))
    chance = random.Random(seed)
    workdir, killed = tmp_path / "killed", 0
    while killed < KILLS:
        process = start(workdir)
        before = num_rows(workdir)
        # Most of a start is importing and compiling; half of the kills come right there, the others
        # among the iterations.
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0.0, 4.0))
        elif before < ITERATIONS - 5:
            wait_for(functools.partial(has_rows, workdir, before + 2), process)
            time.sleep(chance.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        killed += 1
    finish(start(workdir))
    assert digests(workdir) == digests(tmp_path / "calm")


def test_sigterm_saves_and_exits_with_its_own_code(tmp_path):
    process = start(tmp_path, "--run.iterations", "100000")
    wait_for(lambda: len(digests(tmp_path)) >= 1, process)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_INTERRUPTED, output
    assert (
        "saving at the end of this iteration" in output
        and "the same command continues the run" in output
    )
    last = max(digests(tmp_path))
    rows = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(rows[-1])["iteration"] == last


def test_sigterm_before_the_first_iteration_ends_with_the_status_of_an_interruption(tmp_path):
    """While the run is prepared: networks, checkpoints and programs take minutes where they are
    large."""
    process = start(tmp_path)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("devices:"):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_INTERRUPTED, output
    assert "Traceback" not in output and "the same command" in output


def test_a_flipped_byte_falls_back_to_the_checkpoint_before(tmp_path, without_reports):
    config = tictactoe(iterations=4)
    quiet_run("tictactoe", config, tmp_path)
    good = digests(tmp_path)
    files = [
        path
        for path in (tmp_path / "checkpoints").rglob("*")
        if path.is_file() and "/4/" in str(path) and path.stat().st_size > 2000
    ]
    largest = max(files, key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    console = Console(record=True, width=200)
    assert run_experiment(load("tictactoe"), config, tmp_path, make_selfplay_stage, console) == 0
    assert "checkpoint 4 is damaged" in console.export_text()
    assert digests(tmp_path)[4] == good[4]


@pytest.mark.parametrize("moved", ["checkpoints", "checkpoints/steps"])
def test_games_whose_checkpoints_are_gone_are_not_deleted(moved, tmp_path, without_reports):
    config = tictactoe(iterations=3)
    config = dataclasses.replace(
        config,
        replay=dataclasses.replace(config.replay, window_games=8),
        checkpoint=CheckpointConfig(every=1, keep=1),
    )
    quiet_run("tictactoe", config, tmp_path / "run")
    before = digests(tmp_path / "run")
    os.rename(tmp_path / "run" / moved, tmp_path / "elsewhere")
    if moved == "checkpoints":
        (tmp_path / "run" / moved).mkdir()  # where a drive is mounted
    games = {path.name: path.read_bytes() for path in (tmp_path / "run").rglob("*.shard")}
    rows = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    for _ in range(2):
        with pytest.raises(
            ValueError,
            match=r"replay holds the games of a run, but .*checkpoints has no checkpoint for "
            r"them: was it moved",
        ):
            quiet_run("tictactoe", config, tmp_path / "run")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").rglob("*.shard")} == games
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == rows
    shutil.rmtree(tmp_path / "run" / moved, ignore_errors=True)
    os.rename(tmp_path / "elsewhere", tmp_path / "run" / moved)
    quiet_run("tictactoe", config, tmp_path / "run")
    assert digests(tmp_path / "run") == before


def test_settings_that_do_not_fit_a_checkpoint_are_refused_with_both_values(
    tmp_path, without_reports
):
    config = tictactoe()
    quiet_run("tictactoe", config, tmp_path)
    wider = dataclasses.replace(config, network=dataclasses.replace(config.network, filters=6))
    with pytest.raises(ValueError, match=r"network.filters.*4.*6"):
        quiet_run("tictactoe", wider, tmp_path)


def test_an_error_is_one_line_and_no_traceback(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(
            load("tictactoe"), ["--workdir", str(tmp_path), "--config", str(tmp_path / "none.toml")]
        )
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("azero: cannot read the overlay") and error.count("\n") == 1


def test_a_file_is_no_working_directory(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as end:
        main(load("tictactoe"), ["--workdir", str(tmp_path / "file")])
    assert end.value.code == 2
    assert (
        capsys.readouterr().err
        == f"azero: {tmp_path / 'file'}: File exists; a file exists where a directory is "
        f"needed; use another name\n"
    )


def test_copies_that_synchronised_folders_make_are_no_files_of_the_run(tmp_path, without_reports):
    quiet_run("tictactoe", ungated(2), tmp_path)
    found = [path for path in tmp_path.rglob("*") if path.suffix in (".shard", ".host", ".jsonl")]
    assert {path.parent.name for path in found} >= {"replay", "hosts"}
    for path in found:
        shutil.copy(path, path.with_name(f"{path.stem} (1){path.suffix}"))
    (tmp_path / "boards" / "old_index").mkdir(parents=True)
    quiet_run("tictactoe", ungated(3), tmp_path)
    run_from(ungated(3, rate=1e-3), tmp_path, 2)
    played = list(read_replay(tmp_path, load("tictactoe").config.game.build(), False))
    assert [path for path, _, _ in played] == [path for *_, path in list_shards(tmp_path / REPLAY)]
    assert played and not [path for path, _, _ in played if "(1)" in path.name]


def test_two_runs_in_one_working_directory_at_once_are_refused(tmp_path):
    with (
        hold(tmp_path),
        pytest.raises(
            ValueError,
            match=rf"is in use by process {os.getpid()} on .*; two processes would overwrite",
        ),
    ):
        quiet_run("tictactoe", tiny(load("tictactoe").config), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def ungated(iterations: int, rate: float = 1e-2) -> Config:
    """Tic-tac-toe without matches, every checkpoint kept."""
    config = tictactoe(iterations)
    return dataclasses.replace(
        config,
        learner=dataclasses.replace(config.learner, learning_rate=((0, rate),)),
        evaluation=dataclasses.replace(config.evaluation, every=0),
        checkpoint=CheckpointConfig(every=1, keep=10),
    )


def run_from(config: Config, workdir: Path, from_checkpoint: int) -> str:
    console = Console(record=True, width=400)
    arguments = (load("tictactoe"), config, workdir, make_selfplay_stage, console)
    assert run_experiment(*arguments, from_checkpoint) == 0
    return console.export_text()


def test_a_run_goes_back_to_a_checkpoint_and_sets_aside_what_was_behind_it(
    tmp_path, without_reports
):
    config = ungated(4)
    quiet_run("tictactoe", config, tmp_path)
    first = digests(tmp_path)
    shards = {path.name for path in (tmp_path / "replay").glob("*.shard")}
    with pytest.raises(
        ValueError,
        match=rf"--from-checkpoint 7: no such checkpoint in {tmp_path}; the "
        rf"checkpoints are: 1, 2, 3, 4",
    ):
        run_from(config, tmp_path, 7)
    # A checkpoint that does not fit the settings is refused before anything is moved.
    other = dataclasses.replace(config, network=config.network.replace(filters=6))
    with pytest.raises(CheckpointError, match=r"checkpoint 2 .* network.filters = 4 in the chec"):
        run_from(other, tmp_path, 2)
    # So are settings that do not fit each other.
    never = dataclasses.replace(config.evaluation, gate=True, every=0)
    with pytest.raises(ValueError, match=r"evaluation.every 0 with evaluation.gate"):
        run_from(dataclasses.replace(config, evaluation=never), tmp_path, 2)
    assert digests(tmp_path) == first
    # With other settings it takes another way.
    assert "gone back to checkpoint 2: moved checkpoints 3, 4 and" in run_from(
        ungated(4, rate=1e-3), tmp_path, 2
    )
    second = digests(tmp_path)
    assert [first[number] == second[number] for number in (1, 2, 3, 4)] == [
        True,
        True,
        False,
        False,
    ]
    aside = tmp_path / "set-aside" / "after-2"
    assert sorted(path.name for path in (aside / "checkpoints" / "steps").iterdir()) == ["3", "4"]
    assert len(read_rows(aside / "metrics.jsonl")) == 4
    assert sorted(path.name for path in (aside / "samples").iterdir()) == ["3.json", "4.json"]
    kept = {path.name for path in (aside / "replay").iterdir()}
    assert kept and kept < shards
    assert [row["iteration"] for row in read_rows(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4]
    # The same command again continues; with the first settings again the run ends as it did at
    # first.
    assert "went back to checkpoint 2 with these settings before" in run_from(
        ungated(4, rate=1e-3), tmp_path, 2
    )
    assert digests(tmp_path) == second
    run_from(config, tmp_path, 2)
    assert digests(tmp_path) == first
    assert (tmp_path / "set-aside" / "after-2-2").is_dir()
    (tmp_path / WENT_BACK).write_text("")
    with pytest.raises(ValueError, match=rf"{WENT_BACK} is not valid JSON"):
        run_from(config, tmp_path, 2)


@pytest.mark.parametrize("rate", [1e30, 1e3])
def test_a_run_that_diverges_keeps_its_checkpoints_and_says_how_to_go_on(
    rate, tmp_path, without_reports
):
    """At the first rate numbers overflow, at the second the loss explodes."""
    tmp_path = tmp_path / "a run"
    quiet_run("tictactoe", ungated(2), tmp_path)
    good = digests(tmp_path)
    with pytest.raises(FloatingPointError) as error:
        quiet_run("tictactoe", ungated(8, rate), tmp_path)
    text = str(error.value)
    assert re.match(r"learning has diverged in iteration \d: .*step", text)
    assert (
        f"azero train tictactoe --workdir '{tmp_path}' --from-checkpoint " in text
        and "--learner.clip-norm 1" in text
    )
    kept = digests(tmp_path)
    assert all(kept[number] == digest for number, digest in good.items())
    for number in kept:
        variables, _ = load_variables(tmp_path, number)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(variables))
    calm = ungated(4)
    clipped = dataclasses.replace(calm, learner=dataclasses.replace(calm.learner, clip_norm=1.0))
    run_from(clipped, tmp_path, 2)
    assert max(digests(tmp_path)) == 4


def test_the_command_that_goes_back_has_the_flags_of_the_run(monkeypatch, tmp_path):
    given = {}
    monkeypatch.setattr(
        "azero.train.start.run_experiment", lambda *_, **options: given.update(options) or 0
    )
    flags = ["--config", "smoke", "--workdir", str(tmp_path / "a run"), "--run.iterations", "9"]
    with pytest.raises(SystemExit):
        main(load("tictactoe"), flags)
    assert given["command"] == (
        f"azero train tictactoe --config smoke --workdir '{tmp_path / 'a run'}' --run.iterations 9"
    )


def test_damaged_settings_of_a_run_are_named(tmp_path):
    config = tiny(load("tictactoe").config)
    config = dataclasses.replace(
        config, network=dataclasses.replace(config.network, convolution="auto")
    )
    (tmp_path / "config.json").write_text('{"network": ')
    with pytest.raises(
        ValueError,
        match=r"config\.json is not valid JSON: .*; if you delete it, the run writes it again",
    ):
        resolve_settings(config, tmp_path)
    (tmp_path / "config.json").write_text('{"network": {"convolution": "xlb"}}')
    with pytest.raises(ValueError, match=r"config\.json: network.convolution is one of"):
        resolve_settings(config, tmp_path)


def test_a_run_keeps_its_convolution_and_takes_the_compute_types_that_are_asked_for(tmp_path):
    network = tictactoe().network.replace(
        convolution="auto", train_dtype="float32", inference_dtype="bfloat16"
    )
    config = dataclasses.replace(tictactoe(), network=network)
    began = network.replace(convolution="xla", train_dtype="bfloat16")
    write_config(tmp_path, dataclasses.replace(config, network=began))
    assert resolve_settings(config, tmp_path).network == network.replace(convolution="xla")
    write_config(tmp_path, dataclasses.replace(config, network=Rollout2016Config()))
    resolve_settings(config, tmp_path)  # the checkpoint names what differs


def test_a_bucket_is_no_working_directory(capsys):
    with pytest.raises(SystemExit) as end:
        main(load("tictactoe"), ["--workdir", "gs://bucket/run"])
    assert end.value.code == 2
    assert "mount the bucket" in capsys.readouterr().err


def test_an_empty_working_directory_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as `--workdir "$UNSET"` had run there
    with pytest.raises(SystemExit) as end:
        main(load("tictactoe"), ["--workdir", ""])
    assert end.value.code == 2
    assert "--workdir is empty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
