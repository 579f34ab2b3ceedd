"""The baseline: a plain self-play loop of Pgx and mctx, with the structure of Pgx's AlphaZero
example.

`azero bench loop --against pgx` runs this module in a separate process. Pgx is an optional extra
(`pip install 'azero[peers]'`).
"""

import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from azero.bench.games import RulesEngine, spread_games
from azero.bench.settings import SETTINGS, SettingName, make_config
from azero.config import check_range
from azero.console.interrupts import end_in_one_line
from azero.games.go.settings import GoConfig
from azero.networks.network import Inputs, Network
from azero.settings import Config
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
    """(variables, optimiser state, samples, key) -> (variables, optimiser state): one pass over the
    samples in random order."""
    optimiser: optax.GradientTransformation


def make_peer_loop(
    env: Any, network: Network, num_games: int, moves: int, num_simulations: int, batch_size: int
) -> PeerLoop:
    """Make the loop: Gumbel search by mctx with its defaults, automatic restart, Adam 1e-3 (Pgx's
    example).

    Games begin after a random number of random moves, 0 to size^2 - 1.
    """
    optimiser = optax.adam(1e-3)

    def advance(state: Any, action: Array) -> tuple[Any, Array, Array]:
        state = env.step(state, action)
        return state, state.terminated, state.rewards

    def init(key: Array) -> Any:
        return spread_games(
            RulesEngine("pgx", env.init, advance, lambda state: state.legal_action_mask),
            num_games,
            env.num_actions - 1,
            key,
        )

    return PeerLoop(
        init=jax.jit(init),
        play=jax.jit(_make_play(env, network, num_games, moves, num_simulations)),
        train=jax.jit(functools.partial(_train, network, optimiser, batch_size)),
        optimiser=optimiser,
    )


def _make_play(
    env: Any, network: Network, num_games: int, moves: int, num_simulations: int
) -> Callable[[PyTree, Any, Array], tuple[Any, PeerSamples]]:
    """Return `PeerLoop.play`."""
    import mctx
    from pgx.experimental import auto_reset

    def recurrent(
        variables: PyTree, key: Array, action: Array, state: Any
    ) -> tuple[mctx.RecurrentFnOutput, Any]:
        del key
        player = state.current_player
        state = jax.vmap(env.step)(state, action)
        logits, value = network.apply(variables, state.observation)
        logits = _mask_logits(logits, state.legal_action_mask)
        reward = state.rewards[jnp.arange(state.rewards.shape[0]), player]
        value = jnp.where(state.terminated, 0.0, value)
        discount = jnp.where(state.terminated, 0.0, -1.0)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=value
        ), state

    def search(variables: PyTree, key: Array, states: Any) -> mctx.PolicyOutput[Any]:
        logits, value = network.apply(variables, states.observation)
        root = mctx.RootFnOutput(
            prior_logits=_mask_logits(logits, states.legal_action_mask),
            value=value,
            embedding=states,
        )
        return mctx.gumbel_muzero_policy(
            variables,
            key,
            root,
            recurrent,
            num_simulations,
            invalid_actions=~states.legal_action_mask,
        )

    def play(variables: PyTree, states: Any, key: Array) -> tuple[Any, PeerSamples]:
        def move(states: Any, key: Array) -> tuple[Any, PeerSamples]:
            search_key, reset_key = jax.random.split(key)
            output = search(variables, search_key, states)
            planes, player = states.observation, states.current_player
            states = jax.vmap(auto_reset(env.step, env.init))(
                states, output.action, jax.random.split(reset_key, num_games)
            )
            reward = states.rewards[jnp.arange(num_games), player]
            discount = jnp.where(states.terminated, 0.0, -1.0)
            return states, PeerSamples(
                planes, output.action_weights, reward, discount, states.terminated
            )

        return jax.lax.scan(move, states, jax.random.split(key, moves))

    return play


def _train(
    network: Network,
    optimiser: optax.GradientTransformation,
    batch_size: int,
    variables: PyTree,
    optimiser_state: PyTree,
    samples: PeerSamples,
    key: Array,
) -> tuple[PyTree, PyTree]:
    """Do what `PeerLoop.train` says."""
    targets, known = _value_targets(samples)
    data = (samples.planes, samples.weights, targets, known.astype(jnp.float32))
    moves, num_games = known.shape
    count = moves * num_games // batch_size
    order = jax.random.permutation(key, moves * num_games)[: count * batch_size]

    def batches(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])[order].reshape(count, batch_size, *leaf.shape[2:])

    def step(
        carry: tuple[PyTree, PyTree], batch: tuple[Array, ...]
    ) -> tuple[tuple[PyTree, PyTree], None]:
        return _adam_step(network, optimiser, *carry, batch), None

    carry, _ = jax.lax.scan(step, (variables, optimiser_state), jax.tree.map(batches, data))
    return carry


def _mask_logits(logits: Array, legal: Array) -> Array:
    return jnp.where(legal, logits - logits.max(-1, keepdims=True), jnp.finfo(logits.dtype).min)


def _value_targets(samples: PeerSamples) -> tuple[Array, Array]:
    """Return the outcome of each position float32[K, B] for its side to move, and whether its game
    ended in this batch of moves."""
    known = jnp.cumsum(samples.terminated[::-1], axis=0)[::-1] >= 1

    def back(value: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, discount = step
        value = reward + discount * value
        return value, value

    _, targets = jax.lax.scan(
        back, jnp.zeros_like(samples.reward[0]), (samples.reward, samples.discount), reverse=True
    )
    return targets, known


def _adam_step(
    network: Network,
    optimiser: Any,
    variables: PyTree,
    optimiser_state: PyTree,
    batch: tuple[Array, ...],
) -> tuple[PyTree, PyTree]:
    planes, weights, targets, known = batch

    def loss(params: PyTree) -> tuple[Array, PyTree]:
        outputs, statistics = network.train_apply({**variables, "params": params}, planes)
        policy_loss = optax.softmax_cross_entropy(outputs.logits, weights).mean()
        return policy_loss + (known * (outputs.value - targets) ** 2).mean(), statistics

    gradients, statistics = jax.grad(loss, has_aux=True)(variables["params"])
    updates, optimiser_state = optimiser.update(gradients, optimiser_state)
    return {
        "params": optax.apply_updates(variables["params"], updates),
        "batch_stats": statistics,
    }, optimiser_state


def _clocks() -> np.ndarray:
    """Return the wall-clock and the process's CPU time in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def measure(config: Config, iterations: int) -> dict[str, Any]:
    """Return the fields of `azero.bench.loop.LoopResult` for the plain loop with the board,
    network, search and batches of `config`."""
    assert isinstance(config.game, GoConfig)
    size, selfplay = config.game.size[0], config.selfplay
    moves = selfplay.moves_per_dispatch * selfplay.dispatches_per_iteration
    env = load_pgx_go(size, config.game.komi)
    network = config.network.replace(convolution="xla").build(Inputs((size, size), 17, size**2 + 1))
    batch_size = config.learner.batch_size
    peer = make_peer_loop(
        env, network, selfplay.num_games, moves, config.search.num_simulations, batch_size
    )
    variables = network.init(jax.random.key(0))
    optimiser_state = peer.optimiser.init(variables["params"])
    states = peer.init(jax.random.key(1))
    play, learn = np.zeros(2), np.zeros(2)
    for iteration in range(iterations + 1):
        began, key = _clocks(), jax.random.key(iteration)
        states, samples = jax.block_until_ready(peer.play(variables, states, key))
        played = _clocks()
        variables, optimiser_state = jax.block_until_ready(
            peer.train(variables, optimiser_state, samples, key)
        )
        if iteration > 0:  # the first one compiles
            play += played - began
            learn += _clocks() - played
    positions = iterations * moves * selfplay.num_games
    return {
        "program": "Pgx + mctx",
        "selfplay": positions / play[0],
        "learning": positions // batch_size * batch_size / learn[0],
        "loop": positions / (play[0] + learn[0]),
        "cpu_selfplay": 1000 * play[1] / positions,
        "cpu_loop": 1000 * (play[1] + learn[1]) / positions,
    }


@dataclass(frozen=True)
class PeersArguments:
    """Time the plain loop alone."""

    setting: SettingName = "5x5"
    """Board, network and simulations, as in `azero bench loop`."""
    iterations: int = 4
    """Timed iterations, after the one that compiles."""


def main(arguments: list[str] | None = None) -> None:
    """Print what `measure` returns as one line of JSON."""
    chosen = tyro.cli(PeersArguments, args=arguments)
    check_range(chosen, "--", "iterations", 1)
    print(json.dumps(measure(make_config(SETTINGS[chosen.setting]), chosen.iterations)))


if __name__ == "__main__":
    with end_in_one_line():
        main()
