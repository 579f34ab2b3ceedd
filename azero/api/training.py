"""Training from Python."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from azero.api.model import Model, load
from azero.config import load_overlay, overlay
from azero.console.terminal import make_console
from azero.data.rows import Row
from azero.distributed import EXIT_INTERRUPTED
from azero.experiment import load as load_experiment
from azero.settings import Config
from azero.train.arguments import find_workdir
from azero.train.driver import run_experiment as drive
from azero.train.selfplay_run import make_selfplay_stage
from azero.train.stage import MakeStage, Stage
from azero.train.supervised_run import make_supervised_stage


def run_experiment(
    experiment: str,
    workdir: str | Path | None = None,
    *,
    config: str | Path | Sequence[str | Path] = (),
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    from_network: str | Path | None = None,
    on_metrics: Callable[[Row], None] | None = None,
    verbose: bool = False,
) -> Model:
    """Start an experiment, or continue its run, in this process, and return its network.

    The run is the same as that of `azero train`: the same directory continues it bit for bit, from
    Python or from the command line. Ctrl-C saves it at the end of the iteration; a second one drops
    the iteration.

    Args:
      experiment: "go5", "go9_efficient" ...: `azero train --help` lists them.
      workdir: directory of the run; None is runs/EXPERIMENT.
      config: overlays for a machine or a budget, as --config takes them: "cpu", or a TOML file.
      settings: settings that differ, {"run.iterations": 20, "search.num_simulations": 32}.
      data: for experiments that learn from records: the directory of a data set that
        `azero data import` made.
      from_network: the network that a new run starts with.
      on_metrics: called after every iteration with its row of metrics: "iteration", "loss" ...,
        those of metrics.jsonl. What it raises ends the run, which continues from its last
        checkpoint.
      verbose: print what `azero train` prints.

    Raises:
      ValueError: there is no such experiment, a setting is wrong, or `workdir` is a bucket.
      TypeError: `settings` is not a mapping, or `on_metrics` not a function.
      KeyboardInterrupt: it was stopped; the message says what was saved.
      CheckpointError, StorageError, FloatingPointError, OSError: as `azero train` reports them.
    """
    if on_metrics is not None and not callable(on_metrics):
        raise TypeError(f"on_metrics is a function of a row of metrics, not {on_metrics!r:.80}")
    found = load_experiment(experiment)
    whole = found.config
    for path in [config] if isinstance(config, str | Path) else config:
        whole = load_overlay(Path(path), whole)
    whole = overlay(_nested({} if settings is None else settings), whole, "settings")
    directory = find_workdir(workdir, experiment)
    make_stage = _stage_maker(found.learns_from, experiment, data, from_network)

    def make(config: Config, workdir: Path) -> Stage[Any]:
        stage = dataclasses.replace(make_stage(config, workdir), owns_process=False)
        return stage if on_metrics is None else dataclasses.replace(stage, on_metrics=on_metrics)

    console = make_console(quiet=not verbose)
    if drive(found, whole, directory, make, console) == EXIT_INTERRUPTED:
        raise KeyboardInterrupt(f"stopped and saved in {directory}; the same call continues")
    return load(directory)


def _nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with dotted names as tables, as an overlay file has them."""
    if not isinstance(settings, Mapping):
        raise TypeError(f'settings are like {{"run.iterations": 20}}, not {settings!r:.80}')
    tables: dict[str, Any] = {}
    for name, value in settings.items():
        table, _, key = str(name).partition(".")
        if not key:
            raise ValueError(f"{str(name)!r} is not the name of a setting; run.iterations is one")
        tables.setdefault(table, {})[key] = value
    return tables


def _stage_maker(
    learns_from: str, experiment: str, data: str | Path | None, from_network: str | Path | None
) -> MakeStage[Any]:
    """Return the function that makes the stage of an experiment."""
    first = None if from_network is None else Path(from_network)
    if learns_from == "selfplay":
        if data is not None:
            raise ValueError(f"data: {experiment} learns from its own games")
        return partial(make_selfplay_stage, from_network=first)
    if data is None:
        raise ValueError(
            f"{experiment} learns from records: data is the directory of a data set (azero data "
            "import makes one)"
        )
    return partial(make_supervised_stage, Path(data), from_network=first)
