"""The cost of a run by arithmetic: operations, time on these devices, memory. Nothing is compiled.

A run prints it at the start, and so does `azero doctor`. `azero.plan` analyses compiled programs,
which takes minutes; plans print both, as a check.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azero.chips import peak_flops
from azero.data.shard import row_dtype
from azero.games.game import Game
from azero.networks.network import Inputs, Network, Shapes
from azero.networks.settings import ConvolutionalConfig, NetworkConfig
from azero.search.batched.tree import tree_bytes
from azero.selfplay.targets import policy_room
from azero.settings import Config
from azero.types import PyTree

UTILISATION = 0.25
"""Assumed share of the peak that a search with a residual tower reaches on an accelerator (a
planning figure)."""
UNKNOWN_ACCELERATOR = 100e12
"""FLOP/s of an accelerator that is not in the table."""
VISITED_MOVES = 64
"""Moves of a policy target on average over a run (a planning figure; first networks visit up to
all, see docs/training.md)."""
LIFETIME_SECONDS = 30 * 24 * 3600.0
"""A run that would take longer prints the estimate at the start (AlphaGo Zero's longest run took 40
days)."""
TRAINING_PASSES = 3
"""Cost of a training step per position in evaluations: a forward pass, and the input and weight
gradients of the backward pass, each as expensive."""


@dataclass(frozen=True)
class Estimate:
    """The cost of a whole run on the present devices."""

    flops: float
    """Floating-point operations of the requested iterations."""
    flops_per_second: float
    """Assumed FLOP/s of all devices together."""
    tree_bytes_per_game: int
    tree_bytes: int
    """Trees that one device holds at once."""
    parameters: int
    training_bytes: int
    """Parameters, optimiser state and gradients on every device."""
    replay_bytes: int
    """The full window on disk."""

    @property
    def seconds(self) -> float:
        """Wall time of the run, by arithmetic alone."""
        return self.flops / self.flops_per_second


def estimate(config: Config, iterations: int | None = None, plays: bool = True) -> Estimate:
    """Estimate the cost of `iterations` (default: all) of a run on the devices that are present.

    `plays` is whether positions come from self-play, not from records alone.
    """
    iterations = config.run.iterations if iterations is None else iterations
    game, search, learner = config.game.build(), config.search, config.learner
    params = parameter_shapes(network_of(config, game))
    evaluation = evaluation_flops(config.network, game)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(params))
    evaluations = plays * positions_per_iteration(config) * (mean_simulations(config) + 1)
    evaluations += TRAINING_PASSES * learner.steps_per_iteration * learner.batch_size
    simulations = search.num_simulations
    per_game = plays * tree_bytes(simulations, game, search.edge_width, search.kept_room)
    row = row_dtype(game.frame_words, learner.needs_auxiliary_targets)
    per_position = row.itemsize + round(4 * _words_per_position(config, game))
    # The parameters, their gradients, what the optimiser keeps, and their mean.
    copies = 3 + (learner.optimiser != "momentum") + (learner.average_decay is not None)
    return Estimate(
        flops=evaluations * evaluation * iterations,
        flops_per_second=device_flops(),
        tree_bytes_per_game=per_game,
        tree_bytes=per_game * trees_at_once(config, jax.device_count()),
        parameters=parameters,
        training_bytes=4 * parameters * copies,
        replay_bytes=round(plays * config.replay.window_games * mean_length(game)) * per_position,
    )


def _words_per_position(config: Config, game: Game) -> float:
    """Return the moves of a policy target on average over all positions, those without a target
    included."""
    search, selfplay = config.search, config.selfplay
    moves = min(VISITED_MOVES, policy_room(game))
    # Visits of a new tree are on as many moves as it has simulations; those of kept trees and
    # improved policies (Gumbel) are on more.
    if search.TEACHES_VISITS and not search.kept_room:
        moves = min(moves, search.num_simulations)
    share = 1.0 if selfplay.fast_simulations is None else selfplay.full_search_probability
    return moves * share * selfplay.num_games / selfplay.num_slots


def full_simulations(config: Config, iteration: int) -> int:
    """Return the simulations of self-play's full search after `iteration` iterations."""
    counts = [count for first, count in config.selfplay.simulations if first <= iteration]
    return counts[-1] if counts else config.search.num_simulations


def mean_simulations(config: Config, iteration: int | None = None) -> float:
    """Return the simulations per move on average, with playout-cap randomisation and resigned games
    that are played on, after `iteration` iterations or, if it is None, over the whole run."""
    if iteration is None:
        iterations = range(max(1, config.run.iterations))
        return float(np.mean([mean_simulations(config, number) for number in iterations]))
    full, fast = full_simulations(config, iteration), config.selfplay.fast_simulations
    share = config.selfplay.full_search_probability
    return of_all_games(config, full if fast is None else share * full + (1 - share) * fast)


def of_all_games(config: Config, simulations: float) -> float:
    """Return the simulations per move on average of all games, if those that are not resigned games
    played on have `simulations`."""
    selfplay = config.selfplay
    played_on = selfplay.played_on_games * selfplay.played_on_simulations
    return (selfplay.num_games * simulations + played_on) / selfplay.num_slots


def mean_length(game: Game) -> float:
    """Return the moves of a game on average: a third of the most it may have (planning figure)."""
    return game.max_moves / 3


def positions_per_iteration(config: Config) -> int:
    """Return the positions that self-play makes in an iteration, those of resigned games that are
    played on included."""
    selfplay = config.selfplay
    return selfplay.num_slots * selfplay.moves_per_dispatch * selfplay.dispatches_per_iteration


def games_at_once(config: Config, devices: int) -> int:
    """Return the games that each of `devices` devices searches at once."""
    local = max(1, config.selfplay.num_games // devices)
    return min(local, config.selfplay.search_batch or local)


def trees_at_once(config: Config, devices: int) -> int:
    """Return the trees in the memory of each of `devices` devices: those of the games searched at
    once, or of all games where trees are kept from move to move."""
    if config.search.kept_room:
        return max(1, config.selfplay.num_games // devices)
    return games_at_once(config, devices)


def network_of(config: Config, game: Game) -> Network:
    """Return the network of `config`."""
    return config.network.build(Inputs(game.board_shape, game.num_planes, game.num_actions))


def parameter_shapes(network: Network) -> PyTree:
    """Return the shapes of what a network learns."""
    return jax.eval_shape(network.init, jax.random.key(0))["params"]


def evaluation_flops(config: NetworkConfig, shapes: Shapes) -> float:
    """Return the operations of one evaluation: a multiplication and an addition for every product
    of its convolutions, at the border as elsewhere, and of its matrix products. Convolutions are
    XLA's, whatever computes them here."""
    if isinstance(config, ConvolutionalConfig):
        config = config.replace(convolution="xla")
    network = config.build(shapes, "tpu")
    variables = jax.eval_shape(network.init, jax.random.key(0))
    planes = jax.ShapeDtypeStruct((1, *shapes.board_shape, shapes.num_planes), jnp.float32)
    return 2.0 * _products(jax.make_jaxpr(network.apply)(variables, planes).jaxpr)


def _products(jaxpr: Any) -> int:
    """Return the multiplications of convolutions and matrix products in a traced function; of
    alternatives, as for kinds of processors, it is the most."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [
            _products(getattr(part, "jaxpr", part))
            for value in equation.params.values()
            for part in (value if isinstance(value, tuple | list) else (value,))
            if hasattr(getattr(part, "jaxpr", part), "eqns")
        ]
        if inner:
            total += equation.params.get("length", 1) * (
                max(inner) if equation.primitive.name == "cond" else sum(inner)
            )
        elif equation.primitive.name == "dot_general":
            (axes, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += equation.outvars[0].aval.size * math.prod(left[axis] for axis in axes)
        elif equation.primitive.name == "conv_general_dilated":
            kernel, out = equation.invars[1].aval, equation.outvars[0].aval
            features = equation.params["dimension_numbers"].rhs_spec[0]
            total += out.size * (kernel.size // kernel.shape[features])
    return total


def device_flops() -> float:
    """Return the assumed FLOP/s of all devices together.

    On a CPU it is measured with a matrix product; elsewhere it comes from the table of chips.
    """
    devices = jax.devices()
    if devices[0].platform == "cpu":
        return _measured_cpu_flops()
    peak = peak_flops(devices[0].device_kind) or UNKNOWN_ACCELERATOR
    return peak * UTILISATION * len(devices)


def _measured_cpu_flops() -> float:
    size = 1024
    product = jax.jit(lambda a: a @ a)
    matrix = jnp.ones((size, size), jnp.float32)
    product(matrix).block_until_ready()
    started = time.perf_counter()
    product(matrix).block_until_ready()
    return 2 * size**3 / (time.perf_counter() - started)
