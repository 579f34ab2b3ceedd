"""`azero plan`: what an experiment will need on a slice of TPUs, how long it will take and what it will cost, before anything is rented."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from azero.chips import GIB, Topology, parse_topology
from azero.config import config_hash, load_overlay
from azero.console.progress import working
from azero.console.tables import facts_table, format_bytes, format_count, format_duration, make_table
from azero.console.terminal import make_console
from azero.experiment import Experiment, load
from azero.plan.compiled import DoesNotFit
from azero.plan.fitting import fit, usable_bytes
from azero.plan.hlo import COLLECTIVES
from azero.plan.outlook import Outlook, outlook
from azero.plan.planning import Finding, PlannedPrograms, findings
from azero.settings import Config
from azero.train.arguments import find_flag, overlay_path

_COLUMNS = 5
"""Programs side by side in a table."""
DESCRIPTION = """Say what an experiment needs on a slice of TPUs, before it is rented: memory, time, games a day, days, a price.

Its programs are compiled by the TPU compiler on this machine, which needs no TPU. The experiment's own settings may follow, as in
`python -m azero.experiments.NAME`.
"""


@dataclass(frozen=True)
class PlanArguments:
    """What `azero plan` is told."""

    settings: Annotated[Config, tyro.conf.arg(name="")]
    experiment: str = "go19"
    """The experiment, such as go19."""
    topology: str = "v5e:2x4"
    """The slice: generation (v2, v3, v4, v5e, v5p, v6e) and grid of chips, from v5e:1x1 to v5e:16x16; v4 and v5p have three axes, as in v4:2x2x1."""
    config: Path | None = None
    """Overlay for a machine or a budget, a TOML file with only the keys that differ (see configs/)."""
    fit: bool = False
    """Choose the largest learner.batch-size (up to the experiment's) and selfplay.search-batch that fit, powers of two."""
    price: float | None = None
    """Dollars that a chip costs per hour."""
    efficiency: float = 0.5
    """Share of the roofline that a real run is taken to reach; nothing here was measured on a TPU."""
    json: bool = False
    """Print one JSON object instead of tables."""

    def __post_init__(self) -> None:
        if not 0.0 < self.efficiency <= 1.0:
            raise ValueError(f"--efficiency lies in (0, 1], not {self.efficiency}")
        if self.price is not None and self.price < 0:
            raise ValueError(f"--price is dollars per chip and hour, not {self.price}")


@dataclass(frozen=True)
class Plan:
    """All that was found out about an experiment on a slice."""

    experiment: str
    config: Config
    topology: Topology
    programs: dict[str, Finding]
    outlook: Outlook
    is_fitted: bool

    @property
    def hbm_bytes(self) -> int:
        """Memory that the largest program needs on a device, with what lies beside it."""
        return max(finding.hbm_bytes for finding in self.programs.values())


def main(argv: Sequence[str]) -> None:
    """Make the plan that the flags `argv` ask for, and print it.

    Raises:
      ValueError: there is no such experiment or topology, a setting is wrong, the TPU compiler is missing, or the programs do not fit.
    """
    arguments = parse_plan(argv)
    console = make_console(stderr=True)
    plan = make_plan(load(arguments.experiment), arguments, console)
    if arguments.json:
        print(json.dumps(as_json(plan, arguments), indent=1))
    else:
        print_plan(plan, arguments, make_console())


def parse_plan(argv: Sequence[str]) -> PlanArguments:
    """Return the arguments in `argv`; the settings are those of the experiment that it names, under its overlay.

    Raises:
      ValueError: there is no such experiment or overlay. (A wrong flag ends the program with tyro's own message, which names the nearest flag.)
    """
    default = PlanArguments(settings=Config())
    experiment = load(find_flag(argv, "--experiment") or default.experiment)
    overlay = overlay_path(argv)
    settings = experiment.config if overlay is None else load_overlay(overlay, experiment.config)
    default = dataclasses.replace(default, settings=settings, experiment=experiment.name)
    return tyro.cli(PlanArguments, prog="azero plan", description=DESCRIPTION, default=default, args=list(argv))


def make_plan(experiment: Experiment, arguments: PlanArguments, console: Console) -> Plan:
    """Compile the programs of `experiment` and draw the conclusions; progress goes to `console`.

    Raises:
      ValueError: see `main`.
    """
    topology, config = parse_topology(arguments.topology), arguments.settings
    plays = experiment.learns_from == "selfplay"

    def announce(what: str) -> contextlib.AbstractContextManager[None]:
        return working(what, console)

    if arguments.fit:
        config = fit(config, topology, plays, announce)
    programs = PlannedPrograms(config, topology, plays)
    try:
        found = findings(programs, topology, announce)
    except DoesNotFit as error:
        there = f"of {usable_bytes(topology) / GIB:.2f} GiB that programs may take"
        raise ValueError(f"{experiment.name} does not fit on {topology.name}: {error}, {there}; --fit chooses sizes that do") from error
    return Plan(experiment.name, config, topology, found, outlook(experiment, config, programs, found, arguments.efficiency), arguments.fit)


def fitted_flags(plan: Plan) -> str:
    """Return the flags by which a run takes the sizes of the plan."""
    selfplay, learner = plan.config.selfplay, plan.config.learner
    flags = {"selfplay.num-games": selfplay.num_games, "selfplay.search-batch": selfplay.search_batch, "learner.batch-size": learner.batch_size}
    return " ".join(f"--{name} {value}" for name, value in flags.items() if value is not None and ("self-play" in plan.programs or name.startswith("learner")))


def as_json(plan: Plan, arguments: PlanArguments) -> dict[str, Any]:
    """Return the plan as plain values; sizes in bytes, times in seconds, everything about one device unless its name says otherwise."""
    topology, chip = plan.topology, plan.topology.chip
    return {
        "experiment": plan.experiment,
        "config_hash": config_hash(plan.config),
        "topology": {"name": topology.name, "chips": topology.num_chips, "devices": topology.num_devices},
        "device": {
            "hbm_bytes": chip.device_hbm,
            "usable_bytes": usable_bytes(topology),
            "flops": chip.device_flops,
            "bandwidth": chip.bandwidth / chip.devices,
        },
        "sizes": {
            "num_games": plan.config.selfplay.num_games,
            "search_batch": plan.config.selfplay.search_batch,
            "batch_size": plan.config.learner.batch_size,
        },
        "flags": fitted_flags(plan) if plan.is_fitted else None,
        "hbm_bytes": plan.hbm_bytes,
        "fits": plan.hbm_bytes <= usable_bytes(topology),
        "programs": {name: _finding_json(finding) for name, finding in plan.programs.items()},
        "outlook": dataclasses.asdict(plan.outlook),
        "dollars": _dollars(plan, arguments),
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "hbm_bytes": finding.hbm_bytes,
        "memory": dataclasses.asdict(finding.compiled.memory),
        "beside_bytes": finding.beside_bytes,
        "cost": dataclasses.asdict(finding.cost),
        "instructions": finding.counts,
        "compile_seconds": finding.compiled.seconds,
    }


def _dollars(plan: Plan, arguments: PlanArguments) -> float | None:
    return None if arguments.price is None else plan.outlook.run_days * 24 * plan.topology.num_chips * arguments.price


def print_plan(plan: Plan, arguments: PlanArguments, console: Console) -> None:
    """Print the plan as tables."""
    usable = usable_bytes(plan.topology)
    memory_title = f"{plan.experiment} on {plan.topology.name}: memory of one device"
    for table in _programs_tables(memory_title, plan, lambda finding: _memory_facts(finding, plan.topology.chip.device_hbm)):
        console.print(table)
    for table in _programs_tables("Work of one device, each program once", plan, _work_facts):
        console.print(table)
    console.print(facts_table("What a run would do", _outlook_facts(plan, arguments)))
    for line in plan.outlook.assumptions:
        console.print(f"  - {line}", highlight=False)
    if plan.is_fitted:
        console.print(f"sizes that fit: {fitted_flags(plan)}", highlight=False, soft_wrap=True)
    if plan.hbm_bytes > usable:
        console.print(
            f"does not fit: {format_bytes(plan.hbm_bytes)} of {format_bytes(usable)} that programs may take; --fit chooses sizes that do", style="red"
        )


def _programs_tables(title: str, plan: Plan, describe: Callable[[Finding], dict[str, str]]) -> list[Table]:
    """Return tables with a column for each program, five to a table, which fill a terminal of 80 characters, and a row for each fact."""
    described = [(name, describe(finding)) for name, finding in plan.programs.items()]
    tables = []
    for first in range(0, len(described), _COLUMNS):
        part = described[first : first + _COLUMNS]
        rows = [(label, *(facts[label] for _, facts in part)) for label in part[0][1]]
        tables.append(make_table(title if first == 0 else "", ("", *(name for name, _ in part)), rows))
    return tables


def _memory_facts(finding: Finding, device_hbm: float) -> dict[str, str]:
    memory = finding.compiled.memory
    return {
        "arguments": format_bytes(memory.arguments),
        "new outputs": format_bytes(memory.outputs - memory.aliases),
        "temporaries": format_bytes(memory.temporaries),
        "code": format_bytes(memory.code),
        "beside it": format_bytes(finding.beside_bytes),
        "in all": format_bytes(finding.hbm_bytes),
        f"of {format_bytes(device_hbm)}": f"{100 * finding.hbm_bytes / device_hbm:.0f}%",
    }


def _work_facts(finding: Finding) -> dict[str, str]:
    collectives = [f"{count} {name}" for name, count in finding.counts.items() if name in COLLECTIVES]
    return {
        "flops": f"{finding.cost.flops:.3g}",
        "HBM traffic": format_bytes(finding.cost.hbm_bytes),
        "roofline": _time_text(finding.cost.seconds),
        "gathers": str(finding.counts["gather"]),
        "scatters": str(finding.counts["scatter"]),
        "loops": str(finding.counts["while"]),
        "collectives": ", ".join(collectives) or "none",
        "exchanged": format_bytes(finding.cost.exchanged_bytes),
        "compiled in": format_duration(finding.compiled.seconds),
    }


def _time_text(seconds: float) -> str:
    return format_duration(seconds) if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _percent_text(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else f"{100 * share:.2g}%"


def _outlook_facts(plan: Plan, arguments: PlanArguments) -> dict[str, str]:
    seen = plan.outlook
    facts = {"devices": f"{plan.topology.num_devices} on {plan.topology.num_chips} chip(s)"}
    if seen.simulation_flops is not None and seen.move_seconds is not None:
        facts |= {
            "a simulation": f"{seen.simulation_flops:.4g} flops ({seen.evaluation_flops:.4g} by the network's layers), {format_bytes(seen.simulation_bytes or 0)} of traffic",
            "a move in all games": f"{_time_text(seen.move_seconds)} at the roofline",
            "self-play": f"{format_count(seen.positions_per_second or 0)} positions/s, {format_count(seen.games_per_day or 0)} games a day",
        }
    facts |= {
        "a training step": f"{_time_text(seen.step_seconds)} at the roofline; {seen.step_flops:.4g} flops a device ({seen.step_hand_flops:.4g} by the layers)",
        "the run": f"{format_count(seen.run_steps)} steps" + (f", {format_count(seen.run_games)} games" if seen.run_games else ""),
        "time": f"{format_duration(seen.run_days * 86_400)} ({_percent_text(seen.learner_share)} of it learning)",
    }
    dollars = _dollars(plan, arguments)
    if dollars is not None:
        facts["price"] = f"{dollars:,.2f} dollars at {arguments.price:g} a chip and hour"
    return facts
