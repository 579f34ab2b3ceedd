"""Runs whose learner needs more of a game than policy and result."""

import dataclasses

import pytest
from small_runs import digests, quiet_run, tictactoe

from azero.networks.settings import PooledConfig
from azero.settings import Config
from azero.train.settings import RunConfig

SHARES = {"root_value_share": 0.25, "lambda_return_share": 0.25, "surprise_share": 0.5}
HEADS = {"reply_weight": 0.15, "soft_policy_weight": 2.0, "average_decay": 0.9}


def with_learner(config: Config, **settings: float) -> Config:
    return dataclasses.replace(config, learner=dataclasses.replace(config.learner, **settings))


@pytest.mark.usefixtures("shared_programs", "two_devices", "without_reports")
@pytest.mark.parametrize("pooled", [pytest.param(False, marks=pytest.mark.slow), True])
def test_k_and_k_iterations_equal_2k(pooled, tmp_path) -> None:
    config = with_learner(tictactoe(iterations=2), **SHARES)
    if pooled:
        small = PooledConfig(blocks=2, filters=4, value_hidden=8, head_filters=2, convolution="xla")
        config = dataclasses.replace(with_learner(config, **HEADS), network=small)
    assert quiet_run("tictactoe", config, tmp_path / "whole") == 0
    half = dataclasses.replace(config, run=RunConfig(iterations=1))
    assert quiet_run("tictactoe", half, tmp_path / "parts") == 0
    assert quiet_run("tictactoe", config, tmp_path / "parts") == 0
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
    plain = with_learner(config, **dict.fromkeys(SHARES, 0.0))
    assert quiet_run("tictactoe", plain, tmp_path / "plain") == 0
    assert digests(tmp_path / "plain")[2] != digests(tmp_path / "whole")[2]
