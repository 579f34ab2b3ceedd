"""`azero doctor`: a machine's devices, the resources an experiment needs on it, and problems
found."""

import importlib.metadata
import os
import platform
import shutil
import time

import jax

from azero import YNN_FUSIONS
from azero import mesh as mesh_lib
from azero.compilation_cache import compilation_cache
from azero.console.progress import working
from azero.console.tables import Cell, facts_table, format_bytes, format_duration, make_table
from azero.console.terminal import make_console
from azero.experiment import load
from azero.memory import memory_bytes
from azero.plan.compiled import program_memory
from azero.plan.programs import PlannedProgram, PlannedPrograms
from azero.search.batched.tree import bytes_per_node
from azero.settings import Config
from azero.train.estimate import Estimate, estimate

LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "chex", "orbax-checkpoint", "numpy")
FREE_SHARE = 0.1
"""Share of a device's memory that trees and training leave free (a planning figure)."""


def diagnose(experiment: str, compile_programs: bool) -> int:
    """Print what `experiment` needs here, and problems; return the number of problems.

    Raises:
      ValueError: there is no such experiment.
    """
    chosen = load(experiment)
    mesh_lib.split_cpu()  # as a run does
    config, plays = chosen.config, chosen.learns_from == "selfplay"
    cost = estimate(config, plays=plays)
    console = make_console()
    console.print(facts_table("This machine", _machine_facts()))
    console.print(facts_table(f"What {experiment} needs", _needs(config, cost, plays)))
    if compile_programs:
        with working("compiling", console):
            rows = _compile_rows(config, plays)
        columns = ("program", "compile time", "memory per device")
        console.print(make_table("Compiled for these devices", columns, rows))
    problems = _problems(config, cost, plays)
    for problem in problems:
        console.print(f"problem: {problem}", style="red")
    if not problems:
        console.print("no problems found", style="green")
    return len(problems)


def _machine_facts() -> dict[str, Cell]:
    devices, limit = jax.devices(), _device_bytes()
    kind = f"{devices[0].device_kind} ({devices[0].platform})"
    system = f"{platform.system()} {platform.machine()}"
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    return {
        "devices": f"{len(devices)} x {kind}, {jax.process_count()} host(s)",
        "memory per device": "that of the host" if limit is None else format_bytes(limit),
        "host": f"{os.cpu_count()} cores, {format_bytes(memory_bytes())} memory, {system}",
        "Python": platform.python_version(),
        "libraries": ", ".join(versions),
        "compilation cache": compilation_cache(),
        "XLA's fusions by YNNPACK": YNN_FUSIONS,
    }


def _device_bytes() -> int | None:
    """Return the memory of a device; None where it is that of the host."""
    return (jax.devices()[0].memory_stats() or {}).get("bytes_limit")


def _needs(config: Config, cost: Estimate, plays: bool) -> dict[str, Cell]:
    game = config.game.build()
    search = config.search
    nodes = search.num_simulations + max(1, search.kept_room)
    per_node = bytes_per_node(game, nodes, search.edge_width, search.kept_room > 0)
    trees: dict[str, Cell] = {
        "search tree per node": format_bytes(per_node),
        "search tree per game": format_bytes(cost.tree_bytes_per_game),
        "search trees per device": format_bytes(cost.tree_bytes),
    }
    window = {"replay window on disk, when full": f"about {format_bytes(cost.replay_bytes)}"}
    rate = f"{cost.flops_per_second / 1e9:,.0f} GFLOP/s"
    return {
        "game": f"{config.game.name} {'x'.join(map(str, game.board_shape))}",
        "parameters": cost.parameters,
        **(trees if plays else {}),
        "parameters and optimiser per device": format_bytes(cost.training_bytes),
        **(window if plays else {}),
        "arithmetic of the run": f"{cost.flops:.2g} operations",
        "time here, counting arithmetic alone": f"about {format_duration(cost.seconds)} at {rate}",
    }


def _compile_rows(config: Config, plays: bool) -> list[tuple[Cell, ...]]:
    """Compile self-play, where there is any, and one learning step; nothing is run."""
    programs = PlannedPrograms(config, mesh_lib.make_mesh(), plays)
    rows = [_compiled("self-play", programs.play())] if plays else []
    return [*rows, _compiled("learning step", programs.train_step())]


def _compiled(name: str, program: PlannedProgram) -> tuple[Cell, ...]:
    started = time.monotonic()
    memory = program_memory(program.lower().compile())
    seconds = time.monotonic() - started
    used = 0 if memory is None else memory.arguments + memory.temporaries
    return (name, format_duration(seconds), format_bytes(used))


def _problems(config: Config, cost: Estimate, plays: bool) -> list[str]:
    problems, devices = [], jax.device_count()
    num_games, batch_size = config.selfplay.num_games, config.learner.batch_size
    if plays and num_games % devices:
        problems.append(f"selfplay.num-games = {num_games} is not divisible by {devices} devices")
    if batch_size % devices:
        problems.append(f"learner.batch-size = {batch_size} is not divisible by {devices} devices")
    limit, sharing = _device_bytes(), 1
    if limit is None:  # the devices share the host's memory
        limit, sharing = memory_bytes(), devices
    if sharing * (cost.tree_bytes + cost.training_bytes) > (1 - FREE_SHARE) * limit:
        trees = format_bytes(sharing * cost.tree_bytes)
        sizes = f"the trees ({trees}) do not fit into {format_bytes(limit)}"
        # trees that are kept from move to move are those of all games
        smaller = "num-games" if config.search.kept_room else "search-batch"
        problems.append(f"{sizes}; a smaller selfplay.{smaller} makes them smaller")
    free = shutil.disk_usage(".").free
    if cost.replay_bytes > free:
        sizes = f"about {format_bytes(cost.replay_bytes)}, and {format_bytes(free)} are free"
        advice = "a smaller replay.window-games needs less"
        problems.append(f"the full replay window needs {sizes} on this disk; {advice}")
    return problems
