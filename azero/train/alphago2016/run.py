"""Running AlphaGo of 2016 from records to a player: its stages in order, each resumable, none
repeated."""

import dataclasses
import importlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.text import Text

from azero import mesh as mesh_lib
from azero.compilation_cache import use_compilation_cache
from azero.config import to_dict
from azero.console.standard_output import end_with_reader
from azero.console.tables import format_duration, make_table
from azero.console.terminal import make_console
from azero.data import run_files as files
from azero.data.rows import replace_text, to_plain
from azero.distributed import EXIT_INTERRUPTED
from azero.report.stages import STAGES_FILE, read_stages, write_stages_report
from azero.train.alphago2016.config import (
    DEFAULT,
    STAGES,
    AlphaGoConfig,
    AlphaGoExperiment,
    ordered,
)
from azero.train.alphago2016.estimate import alphago_flops
from azero.train.alphago2016.figures import FIGURES
from azero.train.alphago2016.lee import iterate_value_networks
from azero.train.alphago2016.measures import MATCHES
from azero.train.alphago2016.measures import MEASURES as TABLES
from azero.train.alphago2016.stages import BUILDERS, Outcome, StageContext, prepare_data
from azero.train.arguments import Overlays, parse_flags, under_overlays
from azero.train.estimate import LIFETIME_SECONDS, device_flops
from azero.train.hosts import describe_devices, hold_workdir
from azero.train.stopping import end_with_status

MEASURES = {**TABLES, **FIGURES, "lee": iterate_value_networks}
"""Measuring stages by name."""
PLACES = {
    "rl-match": f"{MATCHES}/reinforce-policy",
    "mixing": f"{MATCHES}/mixing",
    "strength": f"{MATCHES}/strength",
    "prediction": "",
    "value-error": "",
    "value-by-move": "",
}
"""What a stage leaves in the working directory, where that is not a directory with its name; "" is
nothing but numbers."""
_PREDICTING = ("prediction", "value-error", "planes", "filters", "overfitting", "strength", "lee")
"""Stages that predict as many held-out positions as `evaluation` says."""


@dataclass(frozen=True)
class AlphaGoArguments:
    """The command line of the stages."""

    settings: Annotated[AlphaGoConfig, tyro.conf.arg(name="")]
    config: Overlays = ()
    """Overlay for a machine or a budget, a TOML file with only the keys that differ (see configs/).
    Of several, later ones win."""
    workdir: Path | None = None
    """Working directory, which is also a player ("apv:WORKDIR"). The same directory continues a
    run. Default: runs/NAME."""
    data: Path | None = None
    """The directory of `azero data import`, or records: a file or a directory of files, which are
    imported first. Not needed if WORKDIR has its own."""
    stages: tuple[str, ...] = DEFAULT
    """Stages to run, in their fixed order; finished ones are not repeated. Further ones are the
    comparisons planes, filters, overfitting, second-pass, strength, value-by-move and lee."""


def load_stages(name: str) -> AlphaGoExperiment:
    """Return the experiment `name`, one of `MULTI_STAGE`."""
    return importlib.import_module(f"azero.experiments.{name}").EXPERIMENT


def start_stages(experiment: AlphaGoExperiment, argv: Sequence[str] | None = None) -> None:
    """Run `experiment` with the flags in `argv` (default: the command line) and end the process
    with its status."""

    def start() -> int:
        with end_with_reader():
            arguments = parse(experiment, argv)
        assert arguments.workdir is not None
        return run(
            experiment, arguments.settings, arguments.workdir, arguments.data, arguments.stages
        )

    end_with_status(start)


def parse(experiment: AlphaGoExperiment, argv: Sequence[str] | None = None) -> AlphaGoArguments:
    """Return the settings of `experiment` under the overlay and the overrides of the command line.

    Raises:
      ValueError: the overlay is wrong, or the working directory is a bucket.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    default = AlphaGoArguments(settings=under_overlays(experiment.config, argv))
    return parse_flags(default, experiment.name, experiment.title, argv)


def run(
    experiment: AlphaGoExperiment,
    settings: AlphaGoConfig,
    workdir: Path,
    data: Path | None,
    stages: Sequence[str] = DEFAULT,
    console: Console | None = None,
) -> int:
    """Run the stages that are not done; return the exit status.

    Raises:
      ValueError: settings do not fit each other, the devices or the data; a stage needs one that
        has not been run; a stage is unknown.
      CheckpointError: a network or a checkpoint cannot be read or written.
      StorageError: the disk is full or cannot be written to.
      FloatingPointError: a loss is no longer finite.
    """
    mesh_lib.split_cpu()
    use_compilation_cache()
    console = console or make_console()
    _announce(experiment, settings, workdir, console)
    names = ordered(tuple(stages))
    with hold_workdir(workdir):
        _check_needs(workdir, names)
        records = prepare_data(settings, workdir, data, console)
        context = StageContext(experiment.name, settings, workdir, records, console)
        for name in names:
            if STAGES[name].records and not _is_done(context, name):
                context.data(*STAGES[name].records)  # before hours of the stages in front of it
        files.write_config(workdir, settings)
        files.write_run(workdir, experiment.name, settings)
        for name in names:
            if not _run_stage(context, name, console):
                text = f"stopped in stage {name}; the same command continues"
                console.print(text, style="yellow")
                return EXIT_INTERRUPTED
    console.print(f"report: {write_stages_report(workdir)}")
    if (workdir / "policy").is_dir():
        console.print(f'player: "apv:{workdir}"', highlight=False)
    return 0


def _check_needs(workdir: Path, names: Sequence[str]) -> None:
    """Check before hours of learning that every stage will find the ones that it needs.

    Raises:
      ValueError: one has neither been run nor is it in `names`.
    """
    done = _done(workdir)
    for name in names:
        for needed in STAGES[name].needs:
            if needed not in done and needed not in names:
                raise ValueError(
                    f"stage {name} needs stage {needed}, which has not been run in {workdir}: "
                    "add it to --stages"
                )


def _is_done(context: StageContext, name: str) -> bool:
    """Return whether a stage has been run with these settings, and what it left is there."""
    done, facts = _done(context.workdir), _settings_of(context.settings, name)
    return name in done and _agrees(done[name]["settings"], facts)


def _newer(context: StageContext, name: str) -> str:
    """Return what follows "done before": the stages that a finished one needs, and that were
    finished after it; nothing without any."""
    done = _done(context.workdir)
    newer = [one for one in STAGES[name].needs if done[one]["finished"] > done[name]["finished"]]
    if not newer:
        return ""
    return f" {', '.join(newer)} went on; docs/alphago2016.md says how to repeat a stage"


def _run_stage(context: StageContext, name: str, console: Console) -> bool:
    """Run one stage, unless it is done, and store its outcome; return whether it came to its
    end."""
    facts = _settings_of(context.settings, name)
    if _is_done(context, name):
        console.print(Text.assemble((name, "bold"), ": done before", _newer(context, name)))
        return True
    console.print(Text.assemble("\n", (name, "bold"), f"  {STAGES[name].title}"))
    before = read_stages(context.workdir).get(name)
    if before is not None:
        _store(context.workdir, name, {**before, "settings": None})
    started = time.monotonic() - (before or {}).get("seconds", 0.0)
    try:
        outcome = (BUILDERS | MEASURES)[name](context)
    except KeyboardInterrupt as stop:
        if str(stop):
            console.print(str(stop))
        entry = {**(before or _entry(name, Outcome())), "settings": None}
        _store(context.workdir, name, {**entry, "seconds": time.monotonic() - started})
        return False
    entry = {**_entry(name, outcome), "settings": facts}
    _store(context.workdir, name, {**entry, "seconds": time.monotonic() - started})
    if outcome.rows:
        columns = ("what", "paper", "ours")
        console.print(make_table(STAGES[name].title, columns, outcome.rows))
    write_stages_report(context.workdir)
    return True


def _done(workdir: Path) -> dict[str, Any]:
    """Return the stages that are done, and what they left is there; one that is being repeated has
    no settings."""
    return {
        name: stage
        for name, stage in read_stages(workdir).items()
        if stage["settings"] is not None and (workdir / PLACES.get(name, name)).exists()
    }


def _agrees(stored: Any, settings: Any) -> bool:
    """Return whether the settings equal the stored ones; older versions stored more of them."""
    if isinstance(stored, dict) and isinstance(settings, dict):
        return all(key in stored and _agrees(stored[key], value) for key, value in settings.items())
    return bool(stored == settings)


_SECTIONS = {
    "value-data": ("value_data",),
    "rl-match": ("matches",),
    "mixing": ("matches",),
    "second-pass": ("reinforce", "matches"),
    "planes": ("policy",),
    "filters": ("policy", "filters"),
    "overfitting": ("value", "value_data"),
    "strength": ("filters", "matches"),
    "value-by-move": ("by_move",),
    "lee": ("lee", "matches", "value"),
    "prediction": (),
    "value-error": (),
}
"""Settings that determine the outcome of a stage, where they are not those of its name alone."""


def _settings_of(settings: AlphaGoConfig, name: str) -> Any:
    """Return the settings that determine the outcome of a stage."""
    sections = ("game", "network", "seed", *_SECTIONS.get(name, (name,)))
    facts = {section: getattr(settings, section) for section in sections}
    if name in _PREDICTING:
        facts["validation_positions"] = settings.evaluation.validation_positions
    return {
        key: to_dict(value) if dataclasses.is_dataclass(value) else to_plain(value)
        for key, value in facts.items()
    }


def _entry(name: str, outcome: Outcome) -> dict[str, Any]:
    """Return what is stored of a stage, without its settings and its seconds."""
    machine = files.describe_machine()
    return {
        "title": STAGES[name].title,
        "finished": time.time(),
        "rows": [row._asdict() for row in outcome.rows],
        "notes": list(outcome.notes),
        "charts": [dataclasses.asdict(chart) for chart in outcome.charts],
        **{key: machine[key] for key in ("devices", "processor", "cores", "commit")},
    }


def _store(workdir: Path, name: str, entry: dict[str, Any]) -> None:
    stages = {**read_stages(workdir), name: to_plain(entry)}
    replace_text(workdir / STAGES_FILE, json.dumps(stages, indent=2) + "\n")


def _announce(
    experiment: AlphaGoExperiment, settings: AlphaGoConfig, workdir: Path, console: Console
) -> None:
    """Print what will run, where, and how long it would take."""
    console.print(Text.assemble((experiment.name, "bold"), f"  {experiment.title}"))
    console.print(f"devices: {describe_devices()}; working directory: {workdir}")
    seconds = alphago_flops(settings) / device_flops()
    if seconds >= LIFETIME_SECONDS:
        console.print(
            f"All stages would take about {format_duration(seconds)} on this machine, counting "
            "only the networks' arithmetic. They start anyway, and can be stopped and continued "
            "at any time. A version that finishes here: python -m azero.experiments.alphago9 "
            "--config alphago9_hour",
            style="yellow",
        )
