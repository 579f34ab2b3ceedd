"""A small game with real frames, and random finished games of any layout, for the tests of the
replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from azero.data.replay import Replay
from azero.data.sample import Samples
from azero.data.settings import ReplayConfig
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import Games, Step


@dataclass(frozen=True)
class Strip:
    """A strip of cells that both sides fill; a frame has one word, its cells as bits, and bit 31 so
    that the empty strip is not the frame before the game."""

    cells: int = 5
    frame_words: int = 1
    num_frames: int = 8
    num_actions: int = 6
    num_symmetries: int = 2
    name: str = "strip"

    def observe_frames(self, frames: Any, to_play: Any) -> Any:
        bits = (frames[:, 0, None] >> jnp.arange(self.cells, dtype=jnp.uint32)) & 1
        side = jnp.broadcast_to(to_play, (1, self.cells)).astype(jnp.uint32)
        return jnp.concatenate([bits, side]).T.astype(jnp.float32)[None]

    def transform_planes(self, planes: Any, symmetry: Any) -> Any:
        return jnp.where(symmetry == 1, planes[:, ::-1], planes)

    def transform_policy(self, policy: Any, symmetry: Any) -> Any:
        return jnp.where(
            symmetry == 1,
            jnp.concatenate([policy[: self.cells][::-1], policy[self.cells :]]),
            policy,
        )


def random_games(
    random: np.random.Generator,
    lengths: list[int],
    frame_words: int = 1,
    actions: int = 6,
    slots: int = 6,
    first_number: int = 0,
    random_share: float = 0.0,
) -> Games:
    """Make finished games whose frames say where they are from: the first word of a frame is 1000 *
    (number + 1) + ply."""
    length = np.asarray(lengths, np.int32)
    total = int(length.sum())
    number = first_number + np.arange(len(length), dtype=np.int64)
    ply = np.concatenate([np.arange(n) for n in lengths])
    frame = random.integers(0, 2**32, (total, frame_words), np.uint32)
    frame[:, 0] = 1000 * (np.repeat(number, length) + 1) + ply
    is_target = random.random(total) < 0.5
    count = np.where(is_target, random.integers(1, min(slots, actions) + 1, total), 0).astype(
        np.int32
    )
    index = np.argsort(random.random((total, actions)), axis=1).astype(np.int16)
    chosen = np.arange(actions) < count[:, None]
    winner = random.integers(0, 2, len(length))
    is_random = np.zeros(total, bool)
    if random_share:
        is_random = random.random(total) < random_share
    return Games(
        frame=frame,
        to_play=(ply % 2).astype(np.uint8),
        action=index[:, 0],
        policy_count=count,
        is_target=is_target,
        root_value=random.uniform(-1, 1, total).astype(np.float16),
        best_child_value=random.uniform(-1, 1, total).astype(np.float16),
        surprise=random.uniform(0, 1, total).astype(np.float16),
        is_random=is_random,
        length=length,
        result=np.stack([1.0 - 2.0 * winner, 2.0 * winner - 1.0], axis=1).astype(np.float32),
        resigned=random.random(len(length)) < 0.5,
        can_resign=random.random(len(length)) < 0.9,
        number=number,
        network=np.sort(random.integers(0, 1000, (len(length), 2), np.int32), axis=1),
        policy=random_words(random, index[chosen]),
    )


def random_words(random: np.random.Generator, action: np.ndarray) -> np.ndarray:
    """Make words with these actions: some with visits, some with shares."""
    visits, shares = (
        random.integers(1, 1 << 16, action.shape, np.uint16),
        random.uniform(0.01, 1, action.shape).astype(np.float16),
    )
    return np.where(
        random.random(action.shape) < 0.5, words_of(action, visits), words_of(action, shares)
    )


def random_chunk(
    random: np.random.Generator,
    moves: int,
    slots: int,
    finish: float,
    frame_words: int = 1,
    policy_slots: int = 6,
) -> Step:
    """Make a chunk of moves of many games, each ending at every move with probability `finish`."""
    shape = (moves, slots)
    return Step(
        frame=random.integers(0, 2**32, (*shape, frame_words), np.uint32),
        to_play=random.integers(0, 2, shape, np.uint8),
        action=random.integers(0, 6, shape, np.int16),
        policy=random_words(random, random.integers(-1, 6, (*shape, policy_slots), np.int16)),
        is_target=random.random(shape) < 0.5,
        root_value=random.random(shape).astype(np.float16),
        best_child_value=random.random(shape).astype(np.float16),
        surprise=random.random(shape).astype(np.float16),
        is_random=random.random(shape) < 0.1,
        finished=random.random(shape) < finish,
        resigned=random.random(shape) < 0.5,
        rewards=random.integers(-1, 2, (*shape, 2)).astype(np.float32),
        can_resign=random.random(shape) < 0.9,
    )


GAME: Any = Strip()


def open_replay(
    directory: Path,
    state: dict[str, int] | None = None,
    window: int = 1000,
    memory: int = 1 << 26,
    **options: Any,
) -> Replay:
    return Replay(
        directory,
        GAME,
        ReplayConfig(window_games=window, min_positions=1, **options),
        slots=6,
        state=state,
        memory=memory,
    )


def fill(replay: Replay, shards: int, games: int = 10, seed: int = 0) -> None:
    """Add shards of games of 1 to 20 moves, the same for the same seed and shard, and wait until
    they are on disk."""
    for _ in range(shards):
        random = np.random.default_rng([seed, replay.state_dict()["next_shard"]])
        replay.add(
            random_games(
                random, random.integers(1, 21, games).tolist(), first_number=replay.count_games()
            )
        )
    replay.state_dict()  # waits until they are on disk


def assert_equal(one: Samples, other: Samples) -> None:
    for name, mine, theirs in zip(Samples._fields, one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
