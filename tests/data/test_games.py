"""What the learner gets from the replay is what the game itself shows, in every position of real
games and in every symmetry."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy_words import split_words

from azero.data.replay import Replay
from azero.data.sample import unpack
from azero.data.settings import ReplayConfig
from azero.games.table import make
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import Games


def play(game: Any, seed: int, max_plies: int) -> tuple[Games, Any]:
    """Play a random game; returns it as the assembler would, and its states stacked. It may be cut
    short: the planes do not depend on the end."""
    random = np.random.default_rng(seed)
    step, mask, pack, to_play = (
        jax.jit(call) for call in (game.step, game.legal_action_mask, game.pack_frame, game.to_play)
    )
    states, actions = [game.init()], []
    while len(actions) < max_plies and not game.is_terminal(states[-1]):
        actions.append(random.choice(np.flatnonzero(mask(states[-1]))))
        states.append(step(states[-1], jnp.int32(actions[-1])))
    states = states[: len(actions)]
    action, length = np.asarray(actions, np.int16), len(actions)
    games = Games(
        frame=np.stack([pack(state) for state in states]),
        to_play=np.asarray([to_play(state) for state in states], np.uint8),
        action=action,
        policy_count=np.ones(length, np.int32),
        is_target=np.ones(length, bool),
        root_value=np.zeros(length, np.float16),
        best_child_value=np.zeros(length, np.float16),
        surprise=np.zeros(length, np.float16),
        is_random=np.zeros(length, bool),
        length=np.asarray([length], np.int32),
        result=np.asarray([[1.0, -1.0]], np.float32),
        resigned=np.zeros(1, bool),
        can_resign=np.ones(1, bool),
        number=np.zeros(1, np.int64),
        network=np.zeros((1, 2), np.int32),
        policy=words_of(action, np.ones(length, np.uint16)),
    )
    return games, jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


@pytest.mark.parametrize(
    "options", [{"name": "go", "size": 5}, {"name": "tictactoe"}], ids=["go5", "tictactoe"]
)
def test_batches_show_the_positions_of_the_games(tmp_path: Any, options: dict[str, Any]) -> None:
    game: Any = make(**options)
    replay = Replay(tmp_path, game, ReplayConfig(min_positions=1), slots=1)
    played = [play(game, seed, 40) for seed in range(3)]
    for games, _ in played:
        replay.add(games)
    samples = replay.sample(0, 0, 400)
    batch = unpack(game, samples)
    everything = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves), *(states for _, states in played)
    )
    # The same board may come up twice; with the same history, the planes are the same too.
    histories = np.concatenate([_histories(games.frame, game.num_frames) for games, _ in played])
    row = np.asarray(
        [np.flatnonzero((histories == history).all(axis=(1, 2)))[0] for history in samples.frames]
    )
    assert len(np.unique(row)) > len(np.unique(histories, axis=0)) / 2
    here = jax.tree.map(lambda leaf: leaf[row], everything)
    symmetry = samples.symmetry.astype(np.int32)
    planes = jax.vmap(lambda state, which: game.transform_planes(game.observe(state), which))(
        here, symmetry
    )
    np.testing.assert_array_equal(
        np.asarray(batch.planes, np.float32), np.asarray(planes, np.float32)
    )
    policy = jax.vmap(game.transform_policy)(
        jax.nn.one_hot(split_words(samples.policy)[0][:, 0], game.num_actions), symmetry
    )
    np.testing.assert_array_equal(batch.weights, policy)
    np.testing.assert_array_equal(batch.value, np.where(samples.to_play == 0, 1.0, -1.0))
    assert len(np.unique(symmetry)) == game.num_symmetries


def _histories(frames: np.ndarray, length: int) -> np.ndarray:
    padded = np.concatenate([np.zeros((length - 1, frames.shape[1]), frames.dtype), frames])
    return np.stack(
        [padded[np.arange(ply + length - 1, ply - 1, -1)] for ply in range(len(frames))]
    )
