"""From records to self-play and back: AlphaGo Master's start from a supervised network, and networks
that learn from fixed games of self-play (AGZ Figure 4)."""

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import pytest
from record_files import EXPERT, import_to
from rich.console import Console
from small_runs import quiet_run, tiny

from azero.checkpoint import load_variables
from azero.data.records.dataset import Dataset
from azero.data.records.searched import export_searches
from azero.experiment import load
from azero.settings import Config
from azero.train.driver import run_experiment
from azero.train.supervised_run import make_supervised_stage

pytestmark = pytest.mark.usefixtures("shared_programs")


def supervised(config: Config, workdir: Path, data: Path) -> Path:
    learn = functools.partial(make_supervised_stage, data)
    assert run_experiment(load("sl9"), config, workdir, learn, Console(quiet=True)) == 0
    return workdir


@pytest.mark.slow
def test_self_play_starts_from_a_supervised_network_and_its_games_are_learned_from(tmp_path):
    import_to(tmp_path / "records", EXPERT)
    base = tiny(load("sl9").config)
    seen = dataclasses.replace(base, game=base.game.replace(planes=49))
    first = supervised(seen, tmp_path / "supervised", tmp_path / "records")

    config = tiny(load("go9_master").config, iterations=4)
    config = dataclasses.replace(
        config,
        game=config.game.replace(max_moves=20),
        evaluation=dataclasses.replace(config.evaluation, gate=False, every=0),
        learner=dataclasses.replace(config.learner, learning_rate=((0, 0.0),), l2=0.0),
    )
    run = tmp_path / "master"
    assert quiet_run("go9_master", config, run, from_network=first) == 0
    expected, played = load_variables(first)[0]["params"], load_variables(run)[0]["params"]
    jax.tree.map(np.testing.assert_allclose, expected, played)  # the rate of learning is 0

    assert export_searches(run, tmp_path / "games") > 0
    data = Dataset.open(tmp_path / "games")
    rows = data.rows("train")
    assert (rows["policy_count"] > 1).any(), "the policies of searches, not the moves played"
    plain = dataclasses.replace(base.network, tower="plain", heads="sep", blocks=3)
    config = dataclasses.replace(
        base,
        network=plain,
        evaluation=dataclasses.replace(base.evaluation, every=0),
        learner=dataclasses.replace(base.learner, value_weight=1.0),
    )
    workdir = supervised(config, tmp_path / "plain", tmp_path / "games")
    assert load_variables(workdir)[1].network.tower == "plain"
