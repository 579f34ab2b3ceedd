"""`azero doctor`: what this machine is, what an experiment will need on it, and what is wrong."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from azero import YNN_FUSIONS
from azero import mesh as mesh_lib
from azero.compilation_cache import compilation_cache
from azero.console.progress import working
from azero.console.tables import Cell, facts_table, format_bytes, format_duration, make_table
from azero.console.terminal import make_console
from azero.experiment import load
from azero.memory import memory_bytes
from azero.search.batched.tree import bytes_per_node
from azero.settings import Config
from azero.train.estimate import Estimate, estimate
from azero.train.loop import Loop
from azero.types import PyTree

LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "chex", "orbax-checkpoint", "numpy")


def examine(experiment: str, compile_programs: bool) -> int:
    """Print the findings about `experiment` on this machine; return the number of things that are wrong.

    Raises:
      ValueError: there is no such experiment.
    """
    chosen = load(experiment)
    config, plays = chosen.config, chosen.learns_from == "selfplay"
    cost = estimate(config, plays=plays)
    console = make_console()
    console.print(facts_table("This machine", _machine_facts()))
    console.print(facts_table(f"What {experiment} needs", _needs(config, cost, plays)))
    if compile_programs:
        with working("compiling", console):
            rows = _compile_rows(config, plays)
        console.print(make_table("Compiled for these devices", ("program", "compile time", "memory per device"), rows))
    wrong = _problems(config, cost, plays)
    for problem in wrong:
        console.print(f"wrong: {problem}", style="red")
    if not wrong:
        console.print("nothing is wrong", style="green")
    return len(wrong)


def _machine_facts() -> dict[str, Cell]:
    devices = jax.devices()
    memory = devices[0].memory_stats() or {}
    return {
        "devices": f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform}), {jax.process_count()} host(s)",
        "memory per device": format_bytes(memory["bytes_limit"]) if "bytes_limit" in memory else "that of the host",
        "host": f"{os.cpu_count()} cores, {format_bytes(memory_bytes())} memory, {platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "libraries": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES),
        "compilation cache": compilation_cache(),
        "XLA's fusions by YNNPACK": YNN_FUSIONS,
    }


def _needs(config: Config, cost: Estimate, plays: bool) -> dict[str, Cell]:
    game = config.game.build()
    trees: dict[str, Cell] = {
        "search tree per node": format_bytes(bytes_per_node(game, config.search.num_simulations + 1, config.search.edge_width)),
        "search tree per game": format_bytes(cost.tree_bytes_per_game),
        "search trees per device": format_bytes(cost.tree_bytes),
    }
    return {
        "game": f"{config.game.name} {'x'.join(map(str, game.board_shape))}",
        "parameters": cost.parameters,
        **(trees if plays else {}),
        "parameters and optimiser per device": format_bytes(cost.training_bytes),
        **({"replay window on disk, when full": f"about {format_bytes(cost.replay_bytes)}"} if plays else {}),
        "arithmetic of the run": f"{cost.flops:.2g} operations",
        "time here, by arithmetic alone": f"about {format_duration(cost.seconds)} at {cost.flops_per_second / 1e9:,.0f} GFLOP/s",
    }


def _compile_rows(config: Config, plays: bool) -> list[tuple[Cell, ...]]:
    """Compile self-play, where there is any, and one learning step for the present devices; nothing is run."""
    mesh = mesh_lib.make_mesh()
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(config, mesh, Path(folder))
    key = jax.eval_shape(lambda: jax.random.key(0))
    train = jax.eval_shape(loop.learner.init, key)
    rows = []
    if plays:
        params = jax.eval_shape(loop.network.fold, train.variables)
        carry = jax.eval_shape(loop.selfplay.init, key, loop.starts)
        threshold = jax.ShapeDtypeStruct((), "float32")
        rows.append(_compiled("self-play", loop.selfplay.play, params, carry, key, threshold, loop.starts))
    rows.append(_compiled("learning step", loop.learner.train_step, train, loop.batch_shapes()))
    return rows


def _compiled(name: str, program: Any, *shapes: PyTree) -> tuple[Cell, ...]:
    started = time.monotonic()
    compiled = program.lower(*shapes).compile()
    seconds = time.monotonic() - started
    memory = compiled.memory_analysis()
    used = 0 if memory is None else memory.argument_size_in_bytes + memory.temp_size_in_bytes
    return (name, format_duration(seconds), format_bytes(used))


def _problems(config: Config, cost: Estimate, plays: bool) -> list[str]:
    problems = []
    devices = jax.device_count()
    if plays and config.selfplay.num_games % devices:
        problems.append(f"selfplay.num-games = {config.selfplay.num_games} does not divide over {devices} devices")
    if config.learner.batch_size % devices:
        problems.append(f"learner.batch-size = {config.learner.batch_size} does not divide over {devices} devices")
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", memory_bytes())
    if cost.tree_bytes + cost.training_bytes > 0.9 * limit:
        problems.append(
            f"the trees ({format_bytes(cost.tree_bytes)}) do not fit into {format_bytes(limit)}; a smaller selfplay.search-batch makes them smaller"
        )
    free = shutil.disk_usage(".").free
    if cost.replay_bytes > free:
        needed = format_bytes(cost.replay_bytes)
        problems.append(
            f"the full replay window needs about {needed}, and {format_bytes(free)} are free on this disk; a smaller replay.window-games needs less"
        )
    return problems
