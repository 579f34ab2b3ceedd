"""`azero plan`: what an experiment needs on a slice of TPUs, its time and price, before renting."""

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from azero.chips import GIB, Topology, parse_topology
from azero.config import check_range, config_hash
from azero.console.progress import working
from azero.console.tables import (
    facts_table,
    format_bytes,
    format_count,
    format_duration,
    make_table,
)
from azero.console.terminal import make_console
from azero.experiment import Experiment, load
from azero.plan.compiled import DoesNotFit, ProgramCost, device_rates, program_costs, usable_bytes
from azero.plan.fitting import fit
from azero.plan.hlo import COLLECTIVES
from azero.plan.profile import (
    Profile,
    format_time,
    profile,
    profile_json,
    profile_tables,
    save_picture,
)
from azero.plan.programs import PlannedPrograms, topology_mesh
from azero.plan.run_cost import RunCost, run_cost
from azero.settings import Config
from azero.train.arguments import Overlays, default_settings, find_flag

_COLUMNS = 5
"""Programs per table."""
DESCRIPTION = (
    "Estimate what an experiment needs on a TPU slice before it is rented: memory, time, games a "
    "day, price.\n\nThe TPU compiler compiles its programs on this machine, which needs no TPU. "
    "The experiment's own settings may follow, as in\n`python -m azero.experiments.NAME`.\n"
)


@dataclass(frozen=True)
class PlanArguments:
    """The arguments of `azero plan`."""

    settings: Annotated[Config, tyro.conf.arg(name="")]
    experiment: str = "go19"
    """The experiment, such as go19."""
    topology: str = "v5e:2x4"
    """The slice: generation (v2, v3, v4, v5e, v5p, v6e, tpu7x) and grid of chips, from v5e:1x1
    to v5e:16x16; v4, v5p and tpu7x have three axes, as in v4:2x2x1."""
    config: Overlays = ()
    """Overlay for a machine or a budget, a TOML file with only the keys that differ (see configs/).
    Of several, later ones win."""
    fit: bool = False
    """Choose the largest learner.batch-size (up to the experiment's) and selfplay.search-batch, or
    selfplay.num-games where trees are kept, that fit, powers of two."""
    price: float | None = None
    """Price of a chip in dollars per hour."""
    efficiency: float = 0.5
    """Share of the roofline that a real run is taken to reach; nothing here was measured on a
    TPU."""
    profile: bool = False
    """Also print where each program spends its time, by the compiler's own estimates."""
    picture: Path | None = None
    """Write the profile as an image to this file (.svg, .png, .pdf); implies --profile."""
    json: bool = False
    """Print one JSON object instead of tables."""

    def __post_init__(self) -> None:
        check_range(self, "--", "efficiency", 0, 1, above=True)
        check_range(self, "--", "price", 0)


@dataclass(frozen=True)
class Plan:
    """The results for an experiment on a slice."""

    experiment: str
    config: Config
    topology: Topology
    programs: dict[str, ProgramCost]
    run: RunCost
    price: float | None
    """Price of a chip in dollars per hour."""
    is_fitted: bool
    profiles: dict[str, Profile] | None
    """Where each program spends its time, if that was asked for."""

    @property
    def hbm_bytes(self) -> int:
        """Memory that the largest program needs on a device, with all else that is stored there."""
        return max(cost.hbm_bytes for cost in self.programs.values())

    @property
    def dollars(self) -> float | None:
        """Price of the run."""
        chip_hours = self.run.run_days * 24 * self.topology.num_chips
        return None if self.price is None else chip_hours * self.price


def main(argv: Sequence[str]) -> None:
    """Make the plan that the flags `argv` ask for, and print it.

    Raises:
      ValueError: there is no such experiment or topology, a setting is wrong, the TPU compiler is
        missing, or the programs do not fit.
    """
    arguments = parse_plan(argv)
    plan = make_plan(load(arguments.experiment), arguments, make_console(stderr=True))
    if arguments.picture is not None:
        title = f"{plan.experiment} on {plan.topology.name}"
        save_picture(arguments.picture, title, plan.profiles or {})
    if arguments.json:
        print(json.dumps(as_json(plan), indent=1))
    else:
        print_plan(plan, make_console())


def parse_plan(argv: Sequence[str]) -> PlanArguments:
    """Return the arguments in `argv`.

    The settings are those of the experiment that it names, under its overlay.

    Raises:
      ValueError: there is no such experiment, overlay, game, network or search. (A wrong flag ends
        the program with tyro's own message, which names the nearest flag.)
    """
    default = PlanArguments(settings=Config())
    experiment = load(find_flag(argv, "--experiment") or default.experiment)
    settings = default_settings(experiment, argv)
    default = dataclasses.replace(default, settings=settings, experiment=experiment.name)
    return tyro.cli(
        PlanArguments, prog="azero plan", description=DESCRIPTION, default=default, args=list(argv)
    )


def make_plan(experiment: Experiment, arguments: PlanArguments, console: Console) -> Plan:
    """Compile the programs of `experiment` and add up what a run takes; progress is on `console`.

    Raises:
      ValueError: see `main`.
    """
    topology, config = parse_topology(arguments.topology), arguments.settings
    plays = experiment.learns_from == "selfplay"

    def announce(what: str) -> contextlib.AbstractContextManager[None]:
        return working(what, console)

    if arguments.fit:
        config = fit(config, topology, plays, announce)
    programs = PlannedPrograms(config, topology_mesh(topology), plays)
    try:
        costs = program_costs(programs, topology, announce)
    except DoesNotFit as error:
        raise ValueError(
            f"{experiment.name} does not fit on {topology.name}: {error}, of "
            f"{usable_bytes(topology) / GIB:.2f} GiB that programs may take; "
            f"{_advice(arguments.fit)}"
        ) from error
    run, profiles = run_cost(experiment, programs, costs, arguments.efficiency), None
    if arguments.profile or arguments.picture is not None:
        rates, clock = device_rates(topology), topology.chip.clock
        profiles = {
            name: profile(cost.compiled.module, rates, clock) for name, cost in costs.items()
        }
    return Plan(
        experiment.name, config, topology, costs, run, arguments.price, arguments.fit, profiles
    )


def _advice(is_fitted: bool) -> str:
    """Return what to do about programs that do not fit; `--fit` has no effect on matches."""
    return "use another chip or a smaller network" if is_fitted else "--fit chooses sizes that do"


def fitted_flags(plan: Plan) -> str:
    """Return the flags by which a run takes the sizes of the plan."""
    selfplay, flags = plan.config.selfplay, {}
    if "self-play" in plan.programs:
        flags["selfplay.num-games"] = selfplay.num_games
        if selfplay.search_batch is not None:
            flags["selfplay.search-batch"] = selfplay.search_batch
        if plan.config.search.kept_room:
            flags["selfplay.dispatches-per-iteration"] = selfplay.dispatches_per_iteration
    flags["learner.batch-size"] = plan.config.learner.batch_size
    return " ".join(f"--{name} {value}" for name, value in flags.items())


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain values.

    Sizes are in bytes, times in seconds, and everything is about one device unless its name says
    otherwise.
    """
    topology, chip, config = plan.topology, plan.topology.chip, plan.config
    return {
        "experiment": plan.experiment,
        "config_hash": config_hash(config),
        "topology": {
            "name": topology.name,
            "chips": topology.num_chips,
            "devices": topology.num_devices,
        },
        "device": {
            "hbm_bytes": chip.device_hbm,
            "usable_bytes": usable_bytes(topology),
            "flops": chip.device_flops,
            "bandwidth": chip.bandwidth / chip.devices,
        },
        "sizes": {
            "num_games": config.selfplay.num_games,
            "search_batch": config.selfplay.search_batch,
            "batch_size": config.learner.batch_size,
        },
        "flags": fitted_flags(plan) if plan.is_fitted else None,
        "hbm_bytes": plan.hbm_bytes,
        "fits": plan.hbm_bytes <= usable_bytes(topology),
        "programs": {name: _program_json(cost) for name, cost in plan.programs.items()},
        "profile": None
        if plan.profiles is None
        else {name: profile_json(found) for name, found in plan.profiles.items()},
        "run": dataclasses.asdict(plan.run),
        "dollars": plan.dollars,
    }


def _program_json(cost: ProgramCost) -> dict[str, Any]:
    return {
        "hbm_bytes": cost.hbm_bytes,
        "memory": dataclasses.asdict(cost.compiled.memory),
        "beside_bytes": cost.resident_bytes,
        "cost": dataclasses.asdict(cost.work),
        "instructions": cost.counts,
        "compile_seconds": cost.compiled.seconds,
    }


def print_plan(plan: Plan, console: Console) -> None:
    """Print the plan as tables."""
    usable, device_hbm = usable_bytes(plan.topology), plan.topology.chip.device_hbm
    title = f"{plan.experiment} on {plan.topology.name}: memory of one device"
    memory = {name: _memory_facts(cost, device_hbm) for name, cost in plan.programs.items()}
    work = {name: _work_facts(cost) for name, cost in plan.programs.items()}
    for table in _programs_tables(title, memory):
        console.print(table)
    for table in _programs_tables("Work of one device, each program once", work):
        console.print(table)
    for table in profile_tables(plan.profiles or {}):
        console.print(table)
    console.print(facts_table("What a run would do", _run_facts(plan)))
    for line in plan.run.assumptions:
        console.print(f"  - {line}", highlight=False)
    if plan.is_fitted:
        console.print(f"sizes that fit: {fitted_flags(plan)}", highlight=False, soft_wrap=True)
    if plan.hbm_bytes > usable:
        needed = f"{format_bytes(plan.hbm_bytes)} of {format_bytes(usable)} that programs may take"
        console.print(f"does not fit: {needed}; {_advice(plan.is_fitted)}", style="red")


def _programs_tables(title: str, facts: dict[str, dict[str, str]]) -> list[Table]:
    """Return tables with a column for each program and a row for each fact.

    There are five programs to a table, which fill a terminal of 80 characters.
    """
    programs, tables = list(facts), []
    for first in range(0, len(programs), _COLUMNS):
        names = programs[first : first + _COLUMNS]
        rows = [(fact, *(facts[name][fact] for name in names)) for fact in facts[names[0]]]
        tables.append(make_table(title if first == 0 else "", ("", *names), rows))
    return tables


def _memory_facts(cost: ProgramCost, device_hbm: float) -> dict[str, str]:
    memory = cost.compiled.memory
    return {
        "arguments": format_bytes(memory.arguments),
        "new outputs": format_bytes(memory.outputs - memory.aliases),
        "temporaries": format_bytes(memory.temporaries),
        "code": format_bytes(memory.code),
        "resident": format_bytes(cost.resident_bytes),
        "in all": format_bytes(cost.hbm_bytes),
        f"of {format_bytes(device_hbm)}": f"{100 * cost.hbm_bytes / device_hbm:.0f}%",
    }


def _work_facts(cost: ProgramCost) -> dict[str, str]:
    counts = cost.counts
    collectives = [f"{count} {name}" for name, count in counts.items() if name in COLLECTIVES]
    return {
        "flops": f"{cost.work.flops:.3g}",
        "HBM traffic": format_bytes(cost.work.hbm_bytes),
        "roofline": format_time(cost.work.seconds),
        "gathers": str(counts["gather"]),
        "scatters": str(counts["scatter"]),
        "loops": str(counts["while"]),
        "collectives": ", ".join(collectives) or "none",
        "exchanged": format_bytes(cost.work.exchanged_bytes),
        "compiled in": format_duration(cost.compiled.seconds),
    }


def _run_facts(plan: Plan) -> dict[str, str]:
    run, topology = plan.run, plan.topology
    facts = {"devices": f"{topology.num_devices} on {topology.num_chips} chip(s)"}
    if run.simulation_flops is not None and run.move_seconds is not None:
        by_layers = f"({run.evaluation_flops:.4g} by the network's layers)"
        traffic = f"{format_bytes(run.simulation_bytes or 0)} of traffic"
        speed = f"{format_count(run.positions_per_second or 0)} positions/s"
        facts |= {
            "a simulation": f"{run.simulation_flops:.4g} flops {by_layers}, {traffic}",
            "a move in all games": f"{format_time(run.move_seconds)} at the roofline",
            "self-play": f"{speed}, {format_count(run.games_per_day or 0)} games a day",
        }
    flops = f"{run.step_flops:.4g} flops a device ({run.step_hand_flops:.4g} by the layers)"
    games = f", {format_count(run.run_games)} games" if run.run_games else ""
    duration, percent = format_duration(run.run_days * 86_400), 100 * run.learner_share
    learning = f"{percent:.0f}%" if percent >= 1 else f"{percent:.2g}%"
    facts |= {
        "a training step": f"{format_time(run.step_seconds)} at the roofline; {flops}",
        "the run": f"{format_count(run.run_steps)} steps{games}",
        "time": f"{duration} ({learning} of it learning)",
    }
    if plan.dollars is not None:
        facts["price"] = f"{plan.dollars:,.2f} dollars at {plan.price:g} a chip and hour"
    return facts
