"""The time of the network alone for the evaluations of self-play: the same batches in the same
chunks on the same devices, without rules and tree."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from azero.bench.timing import best_seconds
from azero.games.game import Game
from azero.mesh import DATA_AXIS, batch_sharded, put, replicated
from azero.networks.network import Network
from azero.search.batched.evaluation import num_chunks
from azero.search.batched.gumbel import halving_schedule
from azero.search.settings import GumbelConfig, SearchConfig
from azero.settings import Config
from azero.types import Array, PyTree

REPEATS = 3
"""Number of measurements; the best counts."""


def calls_of(config: SearchConfig, num_actions: int) -> Counter[int]:
    """Return the network calls of one search, by their number of positions per game: the root's
    call, and one for every round of simulations."""
    calls = Counter({1: 1})
    if not isinstance(config, GumbelConfig):
        calls[1] += config.num_simulations
        return calls
    for width, rounds in halving_schedule(
        min(config.max_considered, num_actions), config.num_simulations
    ):
        calls[width] += rounds
    return calls


def forward_seconds(
    config: Config, game: Game, network: Network, mesh: Mesh, states: PyTree
) -> float:
    """Return the seconds that the network alone takes for one move of all games on the devices of
    `mesh`, whose positions are states[B]."""
    folded = put(
        jax.jit(lambda key: network.fold(network.init(key)))(jax.random.key(0)), replicated(mesh)
    )
    planes = jax.jit(jax.vmap(game.observe))(states)
    seconds = 0.0
    for width, count in calls_of(config.search, game.num_actions).items():
        wide = jax.device_put(jnp.repeat(planes, width, axis=0), batch_sharded(mesh))
        seconds += count * seconds_of(in_batches(network, mesh), folded, wide)
    return seconds


def in_batches(network: Network, mesh: Mesh) -> Callable[[PyTree, Array], PyTree]:
    """Return the evaluation of planes[B, H, W, C] split over the devices, in the chunks in which a
    search calls the network."""

    def local(folded: PyTree, planes: Array) -> PyTree:
        chunks = num_chunks(planes.shape[0]) if jax.default_backend() == "cpu" else 1
        if chunks == 1:
            return network.infer(folded, planes)
        return jax.lax.map(
            lambda chunk: network.infer(folded, chunk),
            planes.reshape(chunks, -1, *planes.shape[1:]),
        )

    split, everywhere = PartitionSpec(DATA_AXIS), PartitionSpec()
    return jax.jit(
        jax.shard_map(
            local, mesh=mesh, in_specs=(everywhere, split), out_specs=split, check_vma=False
        )
    )


def seconds_of(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the seconds of one of several calls in a row, the best of REPEATS such measurements:
    as many calls as take a twentieth of a second, so that dispatching them does not count."""
    once = best_seconds(lambda _: function(*arguments), 1)
    calls = 1 + int(0.05 / max(once, 1e-6))
    return best_seconds(lambda _: function(*arguments), REPEATS, calls)
