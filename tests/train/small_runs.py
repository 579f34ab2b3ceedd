"""Runs small enough for two iterations in seconds."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

from rich.console import Console

from azero.checkpoint import list_checkpoints
from azero.experiment import load
from azero.settings import Config
from azero.train.driver import run_experiment
from azero.train.selfplay_run import make_selfplay_stage
from azero.train.settings import CheckpointConfig, RunConfig


def tiny(config: Config, iterations: int = 2) -> Config:
    """The same experiment, small enough for two iterations in seconds."""
    return dataclasses.replace(
        config,
        network=dataclasses.replace(
            config.network,
            blocks=2,
            filters=4,
            value_hidden=8,
            convolution="xla",
            train_dtype="float32",
            inference_dtype="float32",
        ),
        search=config.search.replace(
            num_simulations=2, **({"max_considered": 2} if config.search.name == "gumbel" else {})
        ),
        selfplay=dataclasses.replace(
            config.selfplay,
            num_games=8,
            search_batch=4,
            moves_per_dispatch=4,
            dispatches_per_iteration=2,
            resign_min_games=2,
        ),
        replay=dataclasses.replace(config.replay, min_positions=1),
        learner=dataclasses.replace(config.learner, batch_size=8, steps_per_iteration=2),
        evaluation=dataclasses.replace(
            config.evaluation,
            every=min(config.evaluation.every, 2),
            games=min(config.evaluation.games, 16),
            gate_games=16,
            num_simulations=2,
        ),
        checkpoint=CheckpointConfig(every=1, keep=3),
        run=RunConfig(iterations=iterations),
    )


def tictactoe(iterations: int = 2) -> Config:
    """Tiny tic-tac-toe with resignation: tests with these settings share their programs."""
    config = tiny(load("tictactoe").config, iterations)
    return dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, resign=True))


def quiet_run(
    name: str, config: Config, workdir: Path, from_checkpoint: int | None = None, **stage: Any
) -> int:
    """Run an experiment of self-play; `stage` are further arguments of its stage."""
    make_stage = functools.partial(make_selfplay_stage, **stage)
    console = Console(quiet=True)
    return run_experiment(load(name), config, workdir, make_stage, console, from_checkpoint)


def digests(workdir: Path) -> dict[int, str]:
    return {row.iteration: row.digest for row in list_checkpoints(workdir)}
