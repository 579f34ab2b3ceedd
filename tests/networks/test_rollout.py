"""The linear policies: the published weights, sums of weights, and learning through the one
learner."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.data.sample import Batch
from azero.games.go.rules import Go
from azero.learn.learner import make_learner
from azero.learn.settings import LearnerConfig
from azero.mesh import make_mesh
from azero.networks.network import Inputs
from azero.networks.rollout import GROUPS, NUM_GROUPS, init_weights, sum_weights
from azero.networks.settings import Rollout2016Config, Tree2016Config

ROLLOUT = Rollout2016Config(pattern_bits=10)


def test_the_groups_have_the_published_sizes():
    sizes = {name: leaf.size for name, leaf in init_weights(GROUPS, 16).items()}
    assert [sizes[name] for name in ("response", "save_atari", "neighbour", "nakade")] == [
        1,
        1,
        8,
        8192,
    ]
    assert sizes["self_atari"] == 1 and sizes["distance"] + sizes["distance_before"] == 34
    # hashed: 32,207, 69,338 and 32,207 in the paper
    assert sizes["response_pattern"] == sizes["pattern"] == sizes["diamond"] == 2**16


def test_a_logit_is_the_sum_of_its_weights():
    params = {
        name: jnp.arange(1.0, weights.size + 1) for name, weights in init_weights(GROUPS, 4).items()
    }
    numbers = [
        jnp.array(pair, jnp.uint32)
        for pair in (
            [1, 0],
            [1, 0],
            [8, 0],
            [8192, 0],
            [0xF0000001, 0],
            [0x10000001, 0],
            [1, 0],
            [17, 3],
            [0, 1],
            [1, 0],
        )
    ]
    total = sum_weights(params, numbers)
    assert total.tolist() == [1 + 1 + 8 + 8192 + 16 + 2 + 1 + 17 + 0 + 1, 3 + 1]
    assert sum_weights(params, numbers[:6]).tolist() == [1 + 1 + 8 + 8192 + 16 + 2, 0]


def test_it_learns_to_answer_beside_the_last_move():
    game = Go(size=7, num_planes=6)
    network = ROLLOUT.build(game)
    learner = make_learner(
        LearnerConfig(batch_size=32, learning_rate=((0, 0.5),), l2=0.0),
        network,
        game,
        make_mesh(jax.devices()[:1]),
    )
    state = learner.init(jax.random.key(0))
    rng = np.random.default_rng(0)
    moves = rng.permutation([row * 7 + column for row in range(1, 6) for column in range(1, 6)])
    moves = np.resize(moves, 32)
    planes = jax.jit(jax.vmap(lambda move: game.observe(game.step(game.init(), move))))(
        jnp.asarray(moves)
    )
    weights = jax.nn.one_hot(moves + 1, game.num_actions)  # always to the right of it
    batch = Batch(planes, weights, jnp.zeros(32))
    losses = []
    for _ in range(40):
        state, metrics = learner.train_step(state, batch)
        losses.append(float(metrics["policy_loss"]))
    # At first uniform over the 48 empty points; the pass and the stone are no moves.
    assert losses[0] == pytest.approx(np.log(48), abs=1e-4)
    assert losses[-1] < 0.3 and float(metrics["accuracy"]) == 1.0
    live = {name: np.count_nonzero(weights) for name, weights in state.params.items()}
    assert live["neighbour"] == 8 and live["save_atari"] == 0 and 0 < live["pattern"] < 40


@pytest.mark.parametrize("config", [ROLLOUT, Tree2016Config(pattern_bits=10)])
def test_empty_points_share_the_probability(config):
    game = Go(size=7, num_planes=NUM_GROUPS[config.name])
    moves = [8, 16, 0, 24, 48, 20]
    step, network = jax.jit(game.step), config.build(game)
    state = functools.reduce(step, moves, jax.jit(game.init)())
    planes = jax.jit(game.observe)(state)[None]
    logits, _ = jax.jit(network.apply)(network.init(jax.random.key(0)), planes)
    chances = np.asarray(jax.nn.softmax(logits[0]))
    assert not chances[[*moves, 49]].any()
    np.testing.assert_allclose(np.delete(chances, [*moves, 49]), 1 / 43, rtol=1e-6)


def test_other_planes_are_refused():
    with pytest.raises(
        ValueError, match=r"rollout2016 takes game\.planes 6 and 82 moves, not 17 and 82"
    ):
        ROLLOUT.build(Inputs((9, 9), 17, 82))
