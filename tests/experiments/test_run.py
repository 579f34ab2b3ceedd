"""Runs: every experiment runs, is resumed bit for bit, survives kill -9 and SIGTERM, and says in one line what is wrong."""

import dataclasses
import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from azero.checkpoint import list_checkpoints
from azero.config import CheckpointConfig, Config, RunConfig
from azero.data.holding import LOCK, hold
from azero.experiments.experiment import NAMES, load
from azero.experiments.run import EXIT_INTERRUPTED, main, run
from azero.experiments.saving import settle

KILLS = int(os.environ.get("AZERO_TEST_KILLS", "3"))
"""How often the run is killed; 20 for the full check."""


def tiny(config: Config, iterations: int = 2) -> Config:
    """The same experiment, small enough for two iterations in seconds."""
    return dataclasses.replace(
        config,
        network=dataclasses.replace(config.network, blocks=2, filters=4, value_hidden=8, convolution="xla", train_dtype="float32", inference_dtype="float32"),
        search=dataclasses.replace(config.search, num_simulations=2, max_considered=2),
        selfplay=dataclasses.replace(config.selfplay, num_games=8, search_batch=4, moves_per_dispatch=4, dispatches_per_iteration=2, resign_min_games=2),
        replay=dataclasses.replace(config.replay, min_positions=1),
        learner=dataclasses.replace(config.learner, batch_size=8, steps_per_iteration=2),
        evaluation=dataclasses.replace(
            config.evaluation, every=min(config.evaluation.every, 2), games=min(config.evaluation.games, 16), gate_games=16, num_simulations=2
        ),
        checkpoint=CheckpointConfig(every=1, keep=3),
        run=RunConfig(iterations=iterations),
    )


def quiet_run(name: str, config: Config, workdir: Path) -> int:
    return run(load(name), config, workdir, Console(quiet=True))


def digests(workdir: Path) -> dict[int, str]:
    return {row.iteration: row.digest for row in list_checkpoints(workdir)}


LIKE_OTHERS = {"go19_alphazero", "go19_40b", "go9", "go9_gumbel", "go7", "go5_gated", "chess_endings", "minichess"}
"""Experiments whose programs are those of another one with other numbers: go19, go5, chess, animal_shogi."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LIKE_OTHERS else []) for name in NAMES if load(name).learns_from == "selfplay"]
)
def test_two_iterations_of_every_experiment(name, tmp_path):
    config = load(name).config
    if config.game.size == (19,):
        # A whole game of 19x19 is long; six moves are enough for the shapes, and for games to end.
        config = dataclasses.replace(config, game=dataclasses.replace(config.game, max_moves=6))
    if name != "go5":
        # Matches compile for long; one experiment of Go shows them, and tic-tac-toe below plays with and without the gate.
        config = dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, every=0))
    assert quiet_run(name, tiny(config), tmp_path) == 0
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert list(digests(tmp_path)) == [1, 2]
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("gate", [False, True])
def test_k_and_k_iterations_equal_2k_bit_for_bit(gate, tmp_path):
    config = tiny(load("tictactoe").config, iterations=6)
    config = dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, gate=gate), selfplay=dataclasses.replace(config.selfplay, resign=True)
    )
    half = dataclasses.replace(config, run=RunConfig(iterations=3))
    quiet_run("tictactoe", config, tmp_path / "whole")
    quiet_run("tictactoe", half, tmp_path / "parts")
    early = digests(tmp_path / "parts")
    assert list(early) == [1, 2, 3]
    quiet_run("tictactoe", config, tmp_path / "parts")
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
    quiet_run("tictactoe", dataclasses.replace(config, run=RunConfig(iterations=1, seed=1)), tmp_path / "other")
    assert digests(tmp_path / "other")[1] != early[1]


def start(workdir: Path, *extra: str) -> subprocess.Popen:
    config = tiny(load("tictactoe").config, iterations=30)
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
        "run.iterations": 30,
    }
    command = [sys.executable, "-m", "azero.experiments.tictactoe", "--workdir", str(workdir)]
    command += [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}
    return subprocess.Popen([*command, *extra], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


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


def test_a_run_killed_at_random_moments_ends_like_one_never_killed(tmp_path):
    finish(start(tmp_path / "calm"))
    chance = random.Random(int(os.environ.get("AZERO_TEST_SEED", "0")))
    workdir, killed = tmp_path / "killed", 0
    while killed < KILLS:
        process = start(workdir)
        before = num_rows(workdir)
        # Most of a start is importing and compiling; half of the kills come right there, the others among the iterations.
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0.0, 4.0))
        elif before < 25:
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
    assert "saving at the end of this iteration" in output and "the same command continues the run" in output
    last = max(digests(tmp_path))
    rows = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(rows[-1])["iteration"] == last


def test_a_flipped_byte_falls_back_to_the_checkpoint_before(tmp_path):
    config = tiny(load("tictactoe").config, iterations=4)
    quiet_run("tictactoe", config, tmp_path)
    good = digests(tmp_path)
    files = [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file() and "/4/" in str(path) and path.stat().st_size > 2000]
    largest = max(files, key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    console = Console(record=True, width=200)
    assert run(load("tictactoe"), config, tmp_path, console) == 0
    assert "checkpoint 4 is damaged" in console.export_text()
    assert digests(tmp_path)[4] == good[4]


def test_settings_that_do_not_fit_a_checkpoint_are_refused_with_both_values(tmp_path, capsys):
    config = tiny(load("tictactoe").config)
    quiet_run("tictactoe", config, tmp_path)
    wider = dataclasses.replace(config, network=dataclasses.replace(config.network, filters=6))
    with pytest.raises(ValueError, match=r"network.filters.*4.*6"):
        quiet_run("tictactoe", wider, tmp_path)


def test_a_mistake_is_one_line_and_no_traceback(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(load("tictactoe"), ["--workdir", str(tmp_path), "--config", str(tmp_path / "none.toml")])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("azero: cannot read the overlay") and error.count("\n") == 1


def test_a_file_is_no_working_directory(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as end:
        main(load("tictactoe"), ["--workdir", str(tmp_path / "file")])
    assert end.value.code == 2
    assert capsys.readouterr().err == f"azero: {tmp_path / 'file'}: File exists; a file stands where a directory is wanted; take another name\n"


def test_two_runs_in_one_working_directory_at_once_are_refused(tmp_path):
    with hold(tmp_path), pytest.raises(ValueError, match=rf"is in use by process {os.getpid()}; two at once would overwrite"):
        quiet_run("tictactoe", tiny(load("tictactoe").config), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_damaged_settings_of_a_run_are_named(tmp_path):
    config = tiny(load("tictactoe").config)
    config = dataclasses.replace(config, network=dataclasses.replace(config.network, convolution="auto"))
    (tmp_path / "config.json").write_text('{"network": ')
    with pytest.raises(ValueError, match=r"config\.json is not valid JSON: .*; without it, the run writes it anew"):
        settle(config, tmp_path)
    (tmp_path / "config.json").write_text('{"network": {"convolution": "xlb"}}')
    with pytest.raises(ValueError, match=r"config\.json: network.convolution is one of"):
        settle(config, tmp_path)


def test_a_bucket_is_no_working_directory(capsys):
    with pytest.raises(SystemExit) as end:
        main(load("tictactoe"), ["--workdir", "gs://bucket/run"])
    assert end.value.code == 2
    assert "mount the bucket" in capsys.readouterr().err
