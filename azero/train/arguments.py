"""The command line of an experiment: its settings, an overlay file, a working directory."""

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import tyro

from azero.config import C, check, check_range, check_words, load_overlay
from azero.experiment import Experiment
from azero.settings import Config

_BUCKETS = ("gs:/", "s3:/")
"""Prefix of a bucket's address; as a path it would silently become a local directory."""

Overlays = tyro.conf.UseAppendAction[tuple[Path, ...]]
"""The type of --config, which may be given several times."""


@dataclass(frozen=True)
class ClusterOptions:
    """Where self-play and matches run, if not in this process."""

    cluster: str | None = None
    """Elastic self-play on Ray (docs/elastic.md): ray starts it on this machine; auto or HOST:PORT
    is a running cluster."""
    cluster_without_token: bool = False
    """With --cluster auto or HOST:PORT: accept a Ray without a token, on a private network
    (docs/elastic.md)."""
    workers: int = 2
    """With --cluster: number of workers, each with selfplay.num-games games. Workers without
    resources start when there are some."""
    worker_cpus: int = 1
    """With --cluster: CPU cores of a worker."""
    worker_gpus: float = 0.0
    """With --cluster: GPUs of a worker; below 1, workers share one."""
    worker_tpus: int = 0
    """With --cluster: TPU chips of a worker, all of one host."""
    learner_gpus: int = 0
    """With --cluster: GPUs of this machine that Ray reserves for the learner, which is this
    process; 0 leaves it the devices it sees."""

    def __post_init__(self) -> None:
        check_range(self, "--", "workers worker_cpus", 1)
        check_range(self, "--", "worker_gpus worker_tpus learner_gpus", 0)
        given = [
            f"--{field.name.replace('_', '-')}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        check(self.cluster is not None or not given, f"{', '.join(given)}: only with --cluster")


@dataclass(frozen=True)
class Arguments:
    """The command line of an experiment."""

    settings: Annotated[Config, tyro.conf.arg(name="")]
    config: Overlays = ()
    """Overlay for a machine or a budget: a TOML file with only the keys that differ, or one of
    azero's own by name, such as cpu (see configs/). Of several, later ones win."""
    workdir: Path | None = None
    """Directory of the run: checkpoints, games, metrics, report. The same directory continues the
    run. Default: runs/NAME."""
    from_checkpoint: int | None = None
    """Go back to this checkpoint, for example after learning has diverged, and continue with the
    settings given now. Everything after it is set aside. The same command continues."""
    from_network: Path | None = None
    """The run starts with this network, from another run's directory, an exported one or one that
    ships (go7), whose parameters fit: for self-play a supervised network, for records one of
    self-play, for the pooled network that of a smaller board. It may have fewer residual blocks:
    the further ones begin as identities. In chess and shogi it may see more positions."""
    data: Path | None = None
    """Experiments that learn from records: the directory of `azero data import`."""
    elastic: Annotated[ClusterOptions, tyro.conf.arg(name="")] = ClusterOptions()


def parse_arguments(experiment: Experiment, argv: Sequence[str] | None = None) -> Arguments:
    """Return the settings of `experiment` under the overlay and the overrides of the command line.

    Raises:
      ValueError: the overlay is wrong, or the working directory is a bucket. (A wrong flag ends the
        program with tyro's own message, which names the nearest flag.)
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    settings = default_settings(experiment, argv)
    return parse_flags(Arguments(settings=settings), experiment.name, experiment.title, argv)


def default_settings(experiment: Experiment, argv: Sequence[str]) -> Config:
    """Return the settings that the flags in `argv` change: those of `experiment` under its
    overlays, with the game, the network and the search that the flags name.

    Raises:
      ValueError: an overlay is wrong, there is no such game, network or search, or only others
        have one of the settings.
    """
    settings = under_overlays(experiment.config, argv)
    for table in ("game", "network", "search"):
        kind, given = find_flag(argv, f"--{table}.name"), settings_of(argv, f"--{table}.")
        if kind is not None:  # it determines the other flags
            try:
                changed = getattr(settings, table).as_kind(kind, given)
            except ValueError as error:
                raise ValueError(f"--{table}.name is {error}") from error
            settings = dataclasses.replace(settings, **{table: changed})
        for setting in sorted(given):
            getattr(settings, table).check_has(setting, f"--{table}.{setting.replace('_', '-')}")
    return settings


def check_source(experiment: Experiment, arguments: Arguments) -> None:
    """Raise ValueError if the flags do not fit where the experiment's positions come from."""
    if experiment.learns_from == "selfplay":
        if arguments.data is not None:
            raise ValueError(
                f"--data {arguments.data}: {experiment.name} learns from its own games; sl19, sl9, "
                "sl_chess and sl_shogi learn from records"
            )
        return
    if arguments.elastic.cluster is not None:
        problem = f"{experiment.name} learns from records and plays no games"
        raise ValueError(f"--cluster {arguments.elastic.cluster}: {problem}")
    if arguments.data is None:
        how = "--data DIR is a data set (azero data import PATHS --out DIR makes one)"
        raise ValueError(f"{experiment.name} learns from records: {how}")


A = TypeVar("A")
"""A dataclass of arguments with a field `workdir`."""


def parse_flags(default: A, name: str, title: str, argv: Sequence[str]) -> A:
    """Return `default` with the flags in `argv` of experiment `name`, and a working directory.

    Raises:
      ValueError: the working directory is a bucket, or a word is empty. (A wrong flag ends the
        process with an error.)
    """
    check_words(argv)
    arguments: Any = tyro.cli(
        type(default),
        prog=f"python -m azero.experiments.{name}",
        description=title,
        default=default,
        args=argv,
    )
    return cast(A, dataclasses.replace(arguments, workdir=find_workdir(arguments.workdir, name)))


def find_workdir(workdir: str | Path | None, name: str) -> Path:
    """Return the working directory of a run of the experiment `name`: runs/NAME if none is given.

    Raises:
      ValueError: it is a bucket.
    """
    found = Path("runs") / name if workdir is None else Path(workdir)
    if str(found).startswith(_BUCKETS):
        raise ValueError(
            f"workdir {found}: the working directory must be in the file system; mount the bucket "
            "and give its mount point"
        )
    return found


def under_overlays(settings: C, argv: Sequence[str]) -> C:
    """Return `settings` with the overlays of --config in `argv` applied in order. They are read
    before the flags are parsed, because they change the flags' defaults.

    Raises:
      ValueError: an overlay is wrong.
    """
    for path in find_flags(argv, "--config"):
        settings = load_overlay(Path(path), settings)
    return settings


def settings_of(argv: Sequence[str], table: str) -> set[str]:
    """Return the names of the settings that flags of a table ("--network.") are of."""
    flags = [word.partition("=")[0] for word in argv if word.startswith(table)]
    return {flag.removeprefix(table).replace("-", "_") for flag in flags}


def find_flag(argv: Sequence[str], flag: str) -> str | None:
    """Return what follows `flag`, before the flags are parsed; None where it is not given. As for
    the parser, the last one counts."""
    return next(reversed(find_flags(argv, flag)), None)


def find_flags(argv: Sequence[str], flag: str) -> list[str]:
    """Return what follows each `flag`, before the flags are parsed."""
    found = []
    for position, word in enumerate(argv):
        if word == flag and position + 1 < len(argv):
            found.append(argv[position + 1])
        if word.startswith(f"{flag}="):
            found.append(word.removeprefix(f"{flag}="))
    return found
