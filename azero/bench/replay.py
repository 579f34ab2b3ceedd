"""The replay: bytes per position, positions per second in and out, and the share of its time that
the learner waits for data."""

import dataclasses
import functools
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro

from azero import mesh as mesh_lib
from azero.bench.timing import measure_rates
from azero.config import check_range
from azero.data.replay import Replay
from azero.data.sample import unpack
from azero.data.settings import ReplayConfig
from azero.games.game import Game
from azero.games.go.settings import GoConfig
from azero.learn.learner import make_learner, place_samples
from azero.learn.settings import LearnerConfig
from azero.networks.settings import ResNetConfig
from azero.selfplay.targets import policy_room, words_of
from azero.selfplay.trajectory import Assembler, Games, HostArray, Step
from azero.settings import Config

COMMAND = "azero bench replay"
VISITED = {"19x19": 73, "19x19, first networks": 300, "5x5": 15}
"""Average moves per policy target, by row: the moves that a search visits (docs/training.md)."""
_CHUNK = (16, 256)
"""Moves and games of one chunk from the devices."""


def bench_configs() -> dict[str, Config]:
    """Return the settings by row, with smaller networks than those of the experiments, so that the
    learner's waiting is overstated."""
    small = ResNetConfig(blocks=2, filters=32, value_hidden=32)
    large = Config(game=GoConfig(size=(19,)), network=small, learner=LearnerConfig(batch_size=256))
    return {
        "19x19": large,
        "19x19, first networks": large,
        "5x5": Config(
            game=GoConfig(size=(5,)), network=small, learner=LearnerConfig(batch_size=512)
        ),
    }


def run(positions: int = 200_000, steps: int = 40) -> list[dict[str, Any]]:
    """Measure the replay, filled with `positions`, and `steps` learning steps, for each line of
    `VISITED`."""
    return [_measure(name, config, positions, steps) for name, config in bench_configs().items()]


@dataclass(frozen=True)
class ReplayArguments:
    """Measure the replay: memory and disk, and how fast positions are added and sampled."""

    positions: int = 200_000
    """Positions in the replay."""
    steps: int = 40
    """Learning steps."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what `run` measures; `--help` lists the arguments."""
    chosen = tyro.cli(ReplayArguments, args=arguments)
    check_range(chosen, "--", "positions steps", 1)
    for row in run(chosen.positions, chosen.steps):
        bytes_each = (
            f"{row['bytes per position']:.0f} bytes a position ({row['bytes on disk']:.1f} on disk)"
        )
        print(
            f"{row['board']}: {bytes_each}, policy targets of {VISITED[row['board']]} "
            f"moves on average"
        )
        for name in ("assembled", "added", "sampled from memory", "sampled from files", "unpacked"):
            print(f"  {name:<20} {row[name]:>12,.0f} positions/s")
        print(
            f"  the learner waits {row['learner waits']:.1%} of its time at "
            f"{row['learned']:,.0f} positions/s, batch {row['batch']}"
        )


def _measure(name: str, config: Config, positions: int, steps: int) -> dict[str, Any]:
    game = config.game.build()
    size = config.learner.batch_size
    random = np.random.default_rng(0)
    chunks = [random_chunk(random, game, *_CHUNK, VISITED[name]) for _ in range(8)]
    assembled_s, finished = _assemble(chunks, positions)
    count = sum(len(games.action) for games in finished)
    with tempfile.TemporaryDirectory() as folder:
        replay = _open(Path(folder), game, None)
        began = time.perf_counter()
        fill(replay, finished)
        added_s = time.perf_counter() - began
        on_disk = sum(path.stat().st_size for path in Path(folder).glob("*.shard")) / count
        from_files = _open(Path(folder), game, replay.state_dict(), memory=0)
        samples = jax.device_put(replay.sample(0, 0, size))
        hot, cold, dense = (
            size * measure_rates(call, 1.0).per_second
            for call in (
                lambda step: replay.sample(0, step, size),
                lambda step: from_files.sample(0, step, size),
                lambda _: unpack(game, samples),
            )
        )
        learned, waits = _learn(config, game, replay, steps)
    return {
        "board": name,
        "bytes per position": replay.mean_bytes(),
        "bytes on disk": on_disk,
        "assembled": count / assembled_s,
        "added": count / added_s,
        "sampled from memory": hot,
        "sampled from files": cold,
        "unpacked": dense,
        "batch": size,
        "learned": learned,
        "learner waits": waits,
    }


def random_chunk(
    random: np.random.Generator, game: Game, moves: int, games: int, visited: float = 20.0
) -> Step[HostArray]:
    """Return a chunk of random numbers as self-play would send it.

    Games end at the usual length, once per point of the board on average; `visited` is the average
    number of visited moves per position.
    """
    shape, slots = (moves, games), policy_room(game)
    visits = np.where(
        random.random((*shape, slots)) < visited / slots,
        random.integers(1, 100, (*shape, slots)),
        0,
    ).astype(np.uint16)
    finished = random.random(shape) < 2.0 / game.max_moves
    return Step(
        frame=random.integers(0, 2**32, (*shape, game.frame_words), np.uint32),
        to_play=random.integers(0, 2, shape, np.uint8),
        action=random.integers(0, game.num_actions, shape, np.int16),
        policy=words_of(np.broadcast_to(np.arange(slots), visits.shape), visits),
        is_target=np.ones(shape, bool),
        root_value=random.uniform(-1, 1, shape).astype(np.float16),
        best_child_value=random.uniform(-1, 1, shape).astype(np.float16),
        surprise=random.uniform(0, 1, shape).astype(np.float16),
        is_random=np.zeros(shape, bool),
        finished=finished,
        resigned=np.zeros(shape, bool),
        rewards=random.choice([-1.0, 1.0], (*shape, 1)).astype(np.float32)
        * np.asarray([1, -1], np.float32),
        can_resign=np.ones(shape, bool),
    )


def _assemble(chunks: list[Step[HostArray]], positions: int) -> tuple[float, list[Games]]:
    """Feed chunks until the given number of positions is finished; return the CPU seconds and the
    games."""
    assembler, count, turn = Assembler(_CHUNK[1]), 0, 0
    finished: list[Games] = []
    started = time.process_time()
    while count < positions:
        games = assembler.add(chunks[turn % len(chunks)], network=0)
        turn += 1
        count += len(games.action)
        if len(games.length):
            finished.append(games)
    return time.process_time() - started, finished


def _learn(config: Config, game: Game, replay: Replay, steps: int) -> tuple[float, float]:
    """Return positions/s of the learner fed by the replay, and the share of the time it waited for
    batches."""
    mesh = mesh_lib.make_mesh(jax.devices()[:1])
    network = config.network.build(game)
    learner = make_learner(
        dataclasses.replace(config.learner, learning_rate=((0, 1e-3),)), network, game, mesh
    )
    size = config.learner.batch_size

    place = functools.partial(place_samples, mesh)
    state = learner.init(jax.random.key(0))
    state, _ = learner.train_step(state, unpack(game, place(replay.sample(0, 0, size))))  # compiles
    jax.block_until_ready(state)
    started = time.perf_counter()
    with replay.stream(0, 1, steps, size, place) as batches:
        for samples in batches:
            state, _ = learner.train_step(state, unpack(game, samples))
            jax.block_until_ready(state)
        seconds = time.perf_counter() - started
        return steps * size / seconds, batches.waited_s / seconds


def _open(
    directory: Path, game: Game, state: dict[str, int] | None, memory: int | None = None
) -> Replay:
    return Replay(directory, game, ReplayConfig(), policy_room(game), state, memory=memory)


def fill(replay: Replay, finished: Iterable[Games]) -> None:
    """Add games, and wait until the last one is written."""
    for games in finished:
        replay.add(games)
    replay.state_dict()
