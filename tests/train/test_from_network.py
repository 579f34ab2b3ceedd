"""A run that begins with the network of another one."""

import dataclasses
import functools
import io
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from rich.console import Console
from small_runs import quiet_run, tictactoe

from azero.checkpoint import CheckpointError, load_variables
from azero.checkpoint.exported import write_exported
from azero.data.run_files import FIRST_NETWORK, load_run
from azero.experiment import load
from azero.games.go.settings import GoConfig
from azero.games.minichess.encoding import PLANES_PER_FRAME
from azero.games.minichess.settings import MinichessConfig
from azero.networks.settings import PooledConfig
from azero.settings import Config
from azero.train.driver import run_experiment
from azero.train.saving import with_first_network
from azero.train.selfplay_run import make_selfplay_stage
from azero.types import PyTree

pytestmark = pytest.mark.usefixtures("shared_programs", "two_devices")


def begin(config: Config, workdir: Path, network: Path) -> int:
    return quiet_run("tictactoe", config, workdir, from_network=network)


def without_learning(average_decay: float | None = None) -> Config:
    """Settings of a learner that leaves the parameters as they are."""
    config = tictactoe(iterations=1)
    learner = dataclasses.replace(
        config.learner, learning_rate=((0, 0.0),), l2=0.0, average_decay=average_decay
    )
    return dataclasses.replace(config, learner=learner)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("learned")
    assert quiet_run("tictactoe", tictactoe(iterations=1), workdir) == 0
    return workdir


@pytest.mark.parametrize("average_decay", [None, 0.5])
def test_its_parameters_are_those_of_the_other(tmp_path, learned, average_decay) -> None:
    assert begin(without_learning(average_decay), tmp_path, learned) == 0
    expected, _ = load_variables(learned)
    found, _ = load_variables(tmp_path)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-6),
        expected["params"],
        found["params"],
    )
    # The run has begun: it goes on with its own, whatever it is told, and says which that was.
    assert begin(without_learning(average_decay), tmp_path, tmp_path / "nothing") == 0
    assert load_run(tmp_path).run["from_network"] == str(learned)
    assert f"<dd>{learned}</dd>" in (tmp_path / "report.html").read_text()
    assert "from_network" not in load_run(learned).run


def test_a_run_that_has_begun_says_that_another_network_has_no_effect(tmp_path, learned) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    console = Console(record=True, width=300, file=io.StringIO())

    def printed(network: Path) -> str:
        make_stage = functools.partial(make_selfplay_stage, from_network=network)
        run_experiment(load("tictactoe"), without_learning(), run, make_stage, console)
        return console.export_text()

    assert "has no effect" not in printed(learned) + printed(learned)
    variables, config = load_variables(learned)
    changed = jax.tree.map(lambda leaf: leaf + 1, variables)
    write_exported(other, changed, 1, config)
    assert f"--from-network {other} has no effect: the run began with another" in printed(other)


def test_a_network_that_does_not_fit_is_refused(tmp_path, learned, capsys) -> None:
    config = without_learning()
    small = dataclasses.replace(config.network, filters=5)
    other = small.build(config.game.build()).init(jax.random.key(0))
    write_exported(tmp_path / "small", other, 1, dataclasses.replace(config, network=small))
    run_directory = tmp_path / "run"
    with pytest.raises(
        ValueError, match=r"--from-network: the network of tictactoe .* has the sha"
    ):
        begin(config, run_directory, tmp_path / "small")
    pooled = PooledConfig(blocks=1, filters=4)
    other_kind = pooled.build(config.game.build()).init(jax.random.key(0))
    write_exported(tmp_path / "pooled", other_kind, 1, dataclasses.replace(config, network=pooled))
    with pytest.raises(
        ValueError, match=r"; its --network\.name is pooled, this run's is alphago_zero$"
    ):
        begin(config, run_directory, tmp_path / "pooled")
    go = dataclasses.replace(config, game=GoConfig(size=(5,)))
    write_exported(tmp_path / "go", other, 1, go)
    with pytest.raises(
        ValueError, match="the network plays go on 5x5, and this run plays tictactoe on 3x3"
    ):
        begin(config, run_directory, tmp_path / "go")
    assert begin(config, run_directory, learned) == 0, "its copy is not in the way"


def test_a_refused_start_leaves_no_network_to_later_ones(tmp_path, learned) -> None:
    config = without_learning()
    learner = dataclasses.replace(config.learner, batch_size=31)
    with pytest.raises(ValueError, match="batch-size = 31 is not divisible by the 2 devices"):
        begin(dataclasses.replace(config, learner=learner), tmp_path, learned)
    assert quiet_run("tictactoe", config, tmp_path) == 0
    expected, _ = load_variables(learned)
    found, _ = load_variables(tmp_path)
    same = jax.tree.map(np.array_equal, expected["params"], found["params"])
    assert not jax.tree.all(same)


def test_a_run_that_has_begun_without_it_is_not_said_to_have_begun_with_it(learned) -> None:
    with pytest.raises(ValueError, match="has begun without it; omit it to continue that run"):
        begin(tictactoe(iterations=1), learned, learned)
    assert not (learned / FIRST_NETWORK).exists()


def test_a_deeper_network_begins_as_the_other(tmp_path, learned) -> None:
    config = without_learning()
    network = dataclasses.replace(config.network, blocks=config.network.blocks + 1)
    assert begin(dataclasses.replace(config, network=network), tmp_path, learned) == 0
    expected, _ = load_variables(learned)
    found, _ = load_variables(tmp_path)
    added = found["params"]["tower"]["blocks"]["second"]["norm"]["scale"][1]
    np.testing.assert_array_equal(added, 0.0)
    found["params"]["tower"]["blocks"] = jax.tree.map(
        lambda stack: stack[:1], found["params"]["tower"]["blocks"]
    )
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-6),
        expected["params"],
        found["params"],
    )


def test_a_network_that_sees_fewer_positions_begins_as_the_other(tmp_path) -> None:
    class Learner(NamedTuple):
        variables: PyTree

        def starting_with(self, variables: PyTree, mesh: object) -> PyTree:
            return variables

    def begin(given: Path, history: int) -> PyTree:
        shutil.copytree(given, tmp_path / str(history) / FIRST_NETWORK)
        game = dataclasses.replace(config.game, history=history).build()
        learner: Any = Learner(config.network.build(game).init(jax.random.key(1)))
        mesh: Any = None
        workdir = tmp_path / str(history)
        return with_first_network(learner, config.network, workdir, game, mesh)

    config = dataclasses.replace(tictactoe(), game=MinichessConfig())
    variables = config.network.build(config.game.build()).init(jax.random.key(0))
    write_exported(tmp_path / "eight", variables, 1, config)
    cut = begin(tmp_path / "eight", 2)
    given, kernel = (tree["params"]["tower"]["stem"]["kernel"] for tree in (variables, cut))
    one, two, eight = PLANES_PER_FRAME, 2 * PLANES_PER_FRAME, 8 * PLANES_PER_FRAME
    np.testing.assert_array_equal(kernel[:, :, :one], given[:, :, :one])
    np.testing.assert_array_equal(kernel[:, :, two:], given[:, :, eight:])
    two_config = dataclasses.replace(config, game=MinichessConfig(history=2))
    write_exported(tmp_path / "two", cut, 1, two_config)
    with pytest.raises(ValueError, match=r"does not fit this run's: .* has the shape"):
        begin(tmp_path / "two", 3)


def test_there_is_no_network(tmp_path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no directory .*nothing"):
        begin(without_learning(), tmp_path / "run", tmp_path / "nothing")
