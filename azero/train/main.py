"""`python -m azero.experiments.NAME`: from the command line of an experiment to its run."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from azero.distributed.token import VARIABLE
from azero.experiment import Experiment
from azero.train import run as selfplay
from azero.train import supervised_run as records
from azero.train.arguments import Arguments, ClusterOptions, parse_arguments
from azero.train.run import Conduct
from azero.train.stopping import end_with_status


def main(experiment: Experiment, argv: Sequence[str] | None = None) -> None:
    """Run `experiment` with the flags in `argv` (default: the command line) and end the process with its status."""

    def start() -> int:
        arguments = parse_arguments(experiment, argv)
        return (_learn_from_selfplay if experiment.learns_from == "selfplay" else _learn_from_records)(experiment, arguments)

    end_with_status(start)


def _learn_from_selfplay(experiment: Experiment, arguments: Arguments) -> int:
    assert arguments.workdir is not None
    if arguments.data is not None:
        raise ValueError(f"--data {arguments.data}: {experiment.name} learns from games of its own; sl19 and sl9 learn from records")
    if arguments.elastic.cluster is None:
        return selfplay.run(experiment, arguments.settings, arguments.workdir, from_checkpoint=arguments.from_checkpoint)
    with _open_cluster(arguments.elastic) as conduct:
        return selfplay.run(experiment, arguments.settings, arguments.workdir, conduct=conduct, from_checkpoint=arguments.from_checkpoint)


def _learn_from_records(experiment: Experiment, arguments: Arguments) -> int:
    assert arguments.workdir is not None
    if arguments.elastic.cluster is not None:
        raise ValueError(f"--cluster {arguments.elastic.cluster}: {experiment.name} learns from records and plays no games")
    if arguments.data is None:
        raise ValueError(f"{experiment.name} learns from records: --data DIR names a data set (azero data import PATHS --out DIR makes one)")
    return records.run(experiment, arguments.settings, arguments.workdir, arguments.data, from_checkpoint=arguments.from_checkpoint)


def _open_cluster(options: ClusterOptions) -> AbstractContextManager[Conduct]:
    """Return `azero.train.cluster.ray.open_cluster(options)`; Ray is wanted for nothing else.

    Raises:
      ValueError: Ray is not installed.
    """
    if options.cluster == "ray" and "ray" not in sys.modules:
        # Ray reads these when it is imported. What is started here listens on 127.0.0.1 alone, and only who has the token is answered.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", os.environ.get(VARIABLE) or secrets.token_hex(32))
    try:
        from azero.train.cluster.ray import open_cluster
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ValueError(f"--cluster {options.cluster} needs Ray: pip install 'azero[ray]'") from error
    return open_cluster(options)
