"""The whole loop in positions per second, compared with a plain Pgx and mctx loop: same board, same
network, same simulations, one run after the other.

Each program is measured in a separate process, so that neither takes the other's memory, and as its
user would run it: ours on all devices, with one CPU device per core as in `azero train`; the plain
loop on one device, whose operations use all cores.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro
from rich.table import Table

from azero import mesh as mesh_lib
from azero.bench.forward import forward_seconds
from azero.bench.games import engine_of, spread_games
from azero.bench.replay import fill, random_chunk
from azero.bench.settings import SETTINGS, SettingName, make_config
from azero.bench.timing import device_name
from azero.config import check_range
from azero.console.progress import working
from azero.console.tables import make_table
from azero.console.terminal import make_console
from azero.selfplay.trajectory import Assembler
from azero.settings import Config
from azero.train.events import IterationDone, Phase
from azero.train.loop import Loop, RunState

COMMAND = "azero bench loop"
WARM_ITERATIONS = 2
"""Iterations that compile and fill the queues."""
FILLED_GAMES = 64
"""Games of random data in the window before the first iteration, so that the learner can start
before the first game ends."""


@dataclass(frozen=True)
class LoopResult:
    """One program's line of the table."""

    program: str
    selfplay: float
    """Positions/s while it plays."""
    learning: float
    """Positions/s while it learns."""
    loop: float
    """New positions/s of both in turn, each learned from once."""
    cpu_selfplay: float
    """CPU seconds per 1,000 positions played."""
    cpu_loop: float
    """CPU seconds per 1,000 positions played and learned from."""
    network_share: float | None = None
    """Time of the network alone for the same evaluations in the same batches, divided by the time
    of self-play; None if not measured."""


def measure_ours(config: Config, iterations: int) -> LoopResult:
    """Run the loop of `config` from the middle of games on, without its first iterations, which
    compile."""
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(config, mesh_lib.make_mesh(), Path(folder))
        arrays = loop.fresh_arrays()
        games, points = config.selfplay.num_games, int(np.prod(loop.game.board_shape))
        starts = jax.jit(lambda key: spread_games(engine_of(loop.game), games, points, key))(
            jax.random.key(0)
        )
        arrays["carry"] = loop.programs.selfplay_at(0).init(jax.random.key(1), starts)
        state = loop.make_state(arrays)
        fill_replay(loop, state)
        clocks = [timed_iteration(loop, state) for _ in range(WARM_ITERATIONS + iterations)][
            WARM_ITERATIONS:
        ]
        alone = forward_seconds(config, loop.game, loop.network, loop.mesh, starts)
    positions = sum(done.tally.positions for done, _, _ in clocks)
    play, learn = (
        sum(getattr(done, f"{part}_seconds") for done, _, _ in clocks)
        for part in ("selfplay", "learner")
    )
    moves = positions / games
    return LoopResult(
        program="azero",
        selfplay=positions / play,
        learning=iterations
        * config.learner.steps_per_iteration
        * config.learner.batch_size
        / learn,
        loop=positions / (play + learn),
        cpu_selfplay=1000 * sum(playing for _, playing, _ in clocks) / positions,
        cpu_loop=1000 * sum(playing + learning for _, playing, learning in clocks) / positions,
        network_share=alone * moves / play,
    )


def fill_replay(loop: Loop, state: RunState) -> None:
    """Put finished games of random numbers into the window."""
    random, assembler, count = np.random.default_rng(0), Assembler(FILLED_GAMES), 0
    finished = []
    while count < FILLED_GAMES:
        chunk = random_chunk(random, loop.game, loop.game.max_moves, FILLED_GAMES)
        finished.append(assembler.add(chunk, network=0))
        count += len(finished[-1].length)
    fill(state.replay, finished)


def timed_iteration(loop: Loop, state: RunState) -> tuple[IterationDone, float, float]:
    """Run one iteration; return its last event and the CPU seconds of self-play and of learning."""
    began = learning = time.process_time()
    for event in loop.iterate(state):
        if isinstance(event, Phase) and event.text == "learning":
            learning = time.process_time()
        if isinstance(event, IterationDone):
            return event, learning - began, time.process_time() - learning
    raise AssertionError("an iteration ends with IterationDone")


def measure_peer(setting: SettingName, iterations: int) -> LoopResult:
    """Measure the plain loop in a process of its own.

    Raises:
      ValueError: it could not run; the message has the reason.
    """
    command = f"-m azero.bench.peers --setting {setting} --iterations {iterations}"
    done = subprocess.run(
        [sys.executable, *command.split()], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip() or "no message").splitlines()[-1]
        raise ValueError(f"the plain loop of Pgx and mctx did not run: {reason}")
    return LoopResult(**json.loads(done.stdout.splitlines()[-1]))


def run(
    against: str | None = None, setting: SettingName = "5x5", iterations: int = 4
) -> list[LoopResult]:
    """Measure the loop, and before it the plain one of Pgx and mctx where `against` is "pgx".

    Raises:
      ValueError: `against` is another name, or the plain loop cannot run.
    """
    if against not in (None, "pgx"):
        raise ValueError(f"azero bench loop compares with pgx, not {against!r}")
    console = make_console(stderr=True)
    peers: list[LoopResult] = []
    if against:
        with working(f"the plain loop of Pgx and mctx at {setting}", console):
            peers.append(measure_peer(setting, iterations))
    with working(f"our loop at {setting}", console):
        return [measure_ours(make_config(SETTINGS[setting]), iterations), *peers]


@dataclass(frozen=True)
class LoopArguments:
    """Time self-play, learning and both in turn."""

    against: str | None = None
    """pgx: the plain loop of Pgx and mctx, before ours."""
    setting: SettingName = "5x5"
    """5x5: 4 blocks of 32 filters, 16 simulations. 9x9: 6 of 128, 32 simulations, as Pgx's
    AlphaZero example. 19x19: 20 of 256, 32 simulations."""
    iterations: int = 4
    """Timed iterations, after the ones that compile."""


def table(results: list[LoopResult], title: str) -> Table:
    """Return the results as a table to print, ours with its ratios to the other."""
    ours, other = results[0], results[-1]

    def rate(result: LoopResult, name: str) -> str:
        text, ratio = f"{getattr(result, name):,.1f}", getattr(ours, name) / getattr(other, name)
        return f"{text} ({ratio:.1f} x)" if result is ours and other is not ours else text

    rows = [
        (
            result.program,
            *(rate(result, name) for name in ("selfplay", "learning", "loop")),
            "" if result.network_share is None else f"{result.network_share:.0%}",
            f"{result.cpu_selfplay:.2f}",
            f"{result.cpu_loop:.2f}",
        )
        for result in results
    ]
    rates = ("self-play", "learning", "whole loop", "network's share of self-play")
    columns = ("program", *rates, "CPU s/1,000 played", "CPU s/1,000 in all")
    return make_table(title, columns, rows, num_left=1)


def main(arguments: list[str]) -> None:
    """Print the table of `run`."""
    chosen = tyro.cli(LoopArguments, args=arguments)
    check_range(chosen, "--", "iterations", 1)
    mesh_lib.split_cpu()
    results = run(**dataclasses.asdict(chosen))
    against = f" --against {chosen.against}" if chosen.against else ""
    command = f"{COMMAND} --setting {chosen.setting}{against}"
    title = f"Positions/s at {chosen.setting}, {device_name()} ({command})"
    make_console().print(table(results, title))
