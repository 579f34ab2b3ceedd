"""What a user would otherwise run: a plain self-play loop of Pgx and mctx, written after the structure of Pgx's AlphaZero example.

Pgx is an optional extra (`pip install 'azero[peers]'`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import optax

from azero.networks.network import Network
from azero.types import Array, PyTree


def load_pgx_go(size: int, komi: float) -> Any:
    """Return Pgx's Go environment of a square board.

    Raises:
      ValueError: Pgx is not installed.
    """
    try:
        from pgx.go import Go
    except ImportError as error:
        raise ValueError("the comparison needs Pgx: pip install 'azero[peers]'") from error
    return Go(size=size, komi=komi)


class PeerSamples(NamedTuple):
    """One iteration's positions, [K, B, ...]."""

    planes: Array
    weights: Array
    reward: Array
    discount: Array
    terminated: Array


class PeerLoop(NamedTuple):
    """A Pgx and mctx loop in two compiled calls."""

    init: Callable[[Array], PyTree]
    """key -> states[B]"""
    play: Callable[[PyTree, PyTree, Array], tuple[PyTree, PeerSamples]]
    """(variables, states, key) -> (states, samples[K, B])"""
    train: Callable[[PyTree, PyTree, PeerSamples, Array], tuple[PyTree, PyTree]]
    """(variables, optimiser state, samples, key) -> (variables, optimiser state): one pass over the samples in random order."""
    optimiser: optax.GradientTransformation


def make_peer_loop(env: Any, network: Network, num_games: int, moves: int, num_simulations: int, batch_size: int) -> PeerLoop:
    """Make the loop: Gumbel search by mctx with its defaults, automatic restart, Adam 1e-3 (Pgx's example)."""
    optimiser = optax.adam(1e-3)

    def recurrent(variables: PyTree, key: Array, action: Array, state: Any) -> tuple[mctx.RecurrentFnOutput, Any]:
        del key
        player = state.current_player
        state = jax.vmap(env.step)(state, action)
        logits, value = network.apply(variables, state.observation)
        logits = _mask_logits(logits, state.legal_action_mask)
        reward = state.rewards[jnp.arange(state.rewards.shape[0]), player]
        value = jnp.where(state.terminated, 0.0, value)
        discount = jnp.where(state.terminated, 0.0, -1.0)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), state

    def play(variables: PyTree, states: Any, key: Array) -> tuple[Any, PeerSamples]:
        def move(states: Any, key: Array) -> tuple[Any, PeerSamples]:
            search_key, reset_key = jax.random.split(key)
            logits, value = network.apply(variables, states.observation)
            root = mctx.RootFnOutput(prior_logits=_mask_logits(logits, states.legal_action_mask), value=value, embedding=states)
            output = mctx.gumbel_muzero_policy(variables, search_key, root, recurrent, num_simulations, invalid_actions=~states.legal_action_mask)
            planes, player = states.observation, states.current_player
            states = jax.vmap(_auto_reset(env))(states, output.action, jax.random.split(reset_key, num_games))
            reward = states.rewards[jnp.arange(num_games), player]
            discount = jnp.where(states.terminated, 0.0, -1.0)
            return states, PeerSamples(planes, output.action_weights, reward, discount, states.terminated)

        return jax.lax.scan(move, states, jax.random.split(key, moves))

    def train(variables: PyTree, optimiser_state: PyTree, samples: PeerSamples, key: Array) -> tuple[PyTree, PyTree]:
        targets, known = _value_targets(samples)
        data = (samples.planes, samples.weights, targets, known.astype(jnp.float32))
        count = moves * num_games // batch_size
        order = jax.random.permutation(key, moves * num_games)[: count * batch_size]

        def batches(leaf: Array) -> Array:
            return leaf.reshape(-1, *leaf.shape[2:])[order].reshape(count, batch_size, *leaf.shape[2:])

        def step(carry: tuple[PyTree, PyTree], batch: tuple[Array, ...]) -> tuple[tuple[PyTree, PyTree], None]:
            return _adam_step(network, optimiser, *carry, batch), None

        carry, _ = jax.lax.scan(step, (variables, optimiser_state), jax.tree.map(batches, data))
        return carry

    def init(key: Array) -> Any:
        return jax.vmap(env.init)(jax.random.split(key, num_games))

    return PeerLoop(init=jax.jit(init), play=jax.jit(play), train=jax.jit(train), optimiser=optimiser)


def _mask_logits(logits: Array, legal: Array) -> Array:
    return jnp.where(legal, logits - logits.max(-1, keepdims=True), jnp.finfo(logits.dtype).min)


def _auto_reset(env: Any) -> Callable[[Any, Array, Array], Any]:
    """Step, and put a fresh game in the place of a finished one, keeping its rewards and its terminated flag for the record."""

    def step(state: Any, action: Array, key: Array) -> Any:
        state = env.step(state, action)
        fresh = env.init(key).replace(rewards=state.rewards, terminated=state.terminated)
        state = jax.lax.cond(state.terminated, lambda: fresh, lambda: state)
        return state

    def cleared(state: Any, action: Array, key: Array) -> Any:
        return step(state.replace(terminated=jnp.zeros_like(state.terminated)), action, key)

    return cleared


def _value_targets(samples: PeerSamples) -> tuple[Array, Array]:
    """Return the outcome of each position float32[K, B] for its side to move, and whether its game ended in this batch of moves."""
    known = jnp.cumsum(samples.terminated[::-1], axis=0)[::-1] >= 1

    def back(value: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, discount = step
        value = reward + discount * value
        return value, value

    _, targets = jax.lax.scan(back, jnp.zeros_like(samples.reward[0]), (samples.reward, samples.discount), reverse=True)
    return targets, known


def _adam_step(network: Network, optimiser: Any, variables: PyTree, optimiser_state: PyTree, batch: tuple[Array, ...]) -> tuple[PyTree, PyTree]:
    planes, weights, targets, known = batch

    def loss(params: PyTree) -> tuple[Array, PyTree]:
        (logits, value), statistics = network.train_apply({**variables, "params": params}, planes)
        policy_loss = optax.softmax_cross_entropy(logits, weights).mean()
        return policy_loss + (known * (value - targets) ** 2).mean(), statistics

    gradients, statistics = jax.grad(loss, has_aux=True)(variables["params"])
    updates, optimiser_state = optimiser.update(gradients, optimiser_state)
    return {"params": optax.apply_updates(variables["params"], updates), "batch_stats": statistics}, optimiser_state
