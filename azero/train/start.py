"""From the command line of an experiment to its run."""

import contextlib
import os
import secrets
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from azero.console.standard_output import end_with_reader
from azero.distributed.token import VARIABLE
from azero.experiment import Experiment
from azero.train.arguments import Arguments, ClusterOptions, check_source, parse_arguments
from azero.train.driver import run_experiment
from azero.train.selfplay_run import WorkerBackend, make_selfplay_stage
from azero.train.stage import MakeStage
from azero.train.stopping import end_with_status
from azero.train.supervised_run import make_supervised_stage


def start_run(experiment: Experiment, argv: Sequence[str] | None = None) -> None:
    """Run `experiment` with the flags `argv`, by default those of the command line, and end the
    process with its status."""

    def start() -> int:
        with end_with_reader():
            arguments = parse_arguments(experiment, argv)
        check_source(experiment, arguments)
        words = ("azero", "train", experiment.name, *(sys.argv[1:] if argv is None else argv))
        assert arguments.workdir is not None
        with contextlib.ExitStack() as cluster:
            return run_experiment(
                experiment,
                arguments.settings,
                arguments.workdir,
                _stage_maker(arguments, cluster),
                from_checkpoint=arguments.from_checkpoint,
                command=shlex.join(words),
            )

    end_with_status(start)


def _stage_maker(arguments: Arguments, cluster: contextlib.ExitStack) -> MakeStage[Any]:
    """Return what makes the stage: of learning from records where there are any, or of self-play,
    whose workers end with `cluster`."""
    first = arguments.from_network
    if arguments.data is not None:
        return partial(make_supervised_stage, arguments.data, from_network=first)
    options, backend = arguments.elastic, None
    if options.cluster is not None:
        backend = cluster.enter_context(_open_cluster(options))
    return partial(make_selfplay_stage, backend=backend, from_network=first)


def _open_cluster(options: ClusterOptions) -> AbstractContextManager[WorkerBackend]:
    """Return `azero.train.cluster.ray.open_cluster(options)`; Ray is wanted for nothing else.

    Raises:
      ValueError: Ray is not installed.
    """
    if options.cluster == "ray" and "ray" not in sys.modules:
        # Ray reads these when it is imported. What is started here listens on 127.0.0.1 alone,
        # and only who has the token is answered.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", os.environ.get(VARIABLE) or secrets.token_hex(32))
    try:
        from azero.train.cluster.ray import open_cluster
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        problem = f"--cluster {options.cluster} needs Ray: pip install 'azero[ray]'"
        raise ValueError(problem) from error
    return open_cluster(options)
