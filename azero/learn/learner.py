"""One train step for every stage: plain `jit`, parameters replicated, the batch split over devices.

Under `jit` the batch is one global array, so losses, gradients and batch-norm statistics are those
of the whole batch on any number of devices.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from jax.sharding import Mesh

from azero.data.sample import Batch, Samples
from azero.games.game import Game
from azero.learn.losses import (
    Losses,
    auxiliary_losses,
    batch_losses,
    check_heads,
    outcome_target,
    reinforce_losses,
    weighted_sum,
)
from azero.learn.metrics import Metrics, step_metrics
from azero.learn.optimiser import make_optimiser, make_penalty, make_schedule
from azero.learn.settings import LearnerConfig
from azero.mesh import batch_sharded, check_divides, put, replicated
from azero.networks.network import Network, Outputs
from azero.types import Array, PyTree

_STATISTICS_EVERY = 4
"""Steps between updates of the running statistics for averaged parameters, each of which costs
another forward pass. With 1 the policy loss was only 0.001 lower (docs/training-efficiently.md)."""
_FIRST_STEPS = 100
"""Steps at the start of a run that all update them: they begin far from what they will be."""


@struct.dataclass
class TrainState:
    """All that training changes; arrays only, a copy on every device."""

    params: PyTree
    batch_stats: PyTree
    opt_state: PyTree
    step: Array
    """int32[]: training steps done."""
    average: PyTree = None
    """The mean of the parameters over the steps, where `average_decay` asks for it; else None.
    `batch_stats` are then those of the mean, which differ from those of the parameters."""

    @property
    def variables(self) -> PyTree:
        """The variables of the player, as `Network.apply` and `Network.fold` take them."""
        params = self.params if self.average is None else self.average
        return {"params": params, "batch_stats": self.batch_stats}

    def starting_with(self, variables: PyTree, mesh: Mesh) -> "TrainState":
        """Return this state, before its first step, with the variables of another network."""
        placed, params = (put(part, replicated(mesh)) for part in (variables, variables["params"]))
        average = None if self.average is None else params
        return dataclasses.replace(self, **placed, average=average)


LossFn = Callable[[LearnerConfig, Outputs, Batch], Losses]
"""The minimised loss: the policy's loss, the value's times `value_weight`, and those of auxiliary
heads times their weights."""


def prediction_loss(config: LearnerConfig, outputs: Outputs, batch: Batch) -> Losses:
    """Equation 1 of AlphaGo Zero without its last term, which is `make_penalty`'s; and the losses
    of auxiliary heads that have a weight."""
    share = config.root_value_share + config.lambda_return_share
    searched, importance, outcome = jnp.zeros_like(batch.value), None, None
    if (auxiliary := batch.auxiliary) is not None:
        searched = config.root_value_share * auxiliary.root_value
        searched += config.lambda_return_share * auxiliary.later[:, 0]
        importance = 1.0 - config.surprise_share + config.surprise_share * auxiliary.surprise
    target = (1.0 - share) * batch.value + searched
    if "outcome" in outputs.auxiliary:
        probabilities = outcome_target(batch.value, searched, share)
        outcome = (outputs.auxiliary["outcome"], probabilities)
    losses = batch_losses(outputs.logits, outputs.value, batch.weights, target, outcome, importance)
    return losses._replace(auxiliary=auxiliary_losses(config, outputs.auxiliary, batch))


def reinforce_loss(config: LearnerConfig, outputs: Outputs, batch: Batch) -> Losses:
    """Return the policy gradient of AlphaGo (2016).

    `batch.value` is the advantage, `batch.weights` one on the move played.
    """
    del config
    assert batch.allowed is not None, "REINFORCE needs to know which moves the policy chose from"
    return reinforce_losses(outputs.logits, batch.value, batch.weights, batch.allowed)


class Learner(NamedTuple):
    """Training as pure, compiled functions. States passed in are donated: use the returned ones."""

    init: Callable[[Array], TrainState]
    """key -> state"""
    train_step: Callable[[TrainState, Batch], tuple[TrainState, Metrics]]
    """(state, batch [B, ...]) -> (state, metrics)"""
    no_gradients: Callable[[TrainState], PyTree]
    """state -> gradients of zero, to be added to"""
    add_gradients: Callable[[TrainState, PyTree, Batch, Any], tuple[PyTree, Metrics]]
    """(state, gradients, batch [B, ...], share) -> (gradients + share times those of the batch,
    metrics): a part of one large step. For networks without batch norm, and without the L2 term.
    The gradients passed in are donated."""
    update: Callable[[TrainState, PyTree], TrainState]
    """(state, gradients) -> state after one step with them"""


def make_learner(
    config: LearnerConfig,
    network: Network,
    game: Game,
    mesh: Mesh,
    loss_fn: LossFn = prediction_loss,
) -> Learner:
    """Make the learner of `network` on the positions of `game`, which minimises `loss_fn`.

    Raises:
      ValueError: the batch does not split evenly over the devices of `mesh`.
    """
    check_divides(config.batch_size, mesh, "learner.batch-size")
    check_heads(config, network.heads)
    init, step, no_gradients, add, update = _pure_functions(config, network, game, loss_fn)
    everywhere, split = replicated(mesh), batch_sharded(mesh)
    compiled = functools.partial(jax.jit, out_shardings=everywhere)
    return Learner(
        init=compiled(init),
        train_step=compiled(step, in_shardings=(everywhere, split), donate_argnums=0),
        no_gradients=compiled(no_gradients),
        add_gradients=compiled(
            add, in_shardings=(everywhere, everywhere, split, everywhere), donate_argnums=1
        ),
        update=compiled(update, in_shardings=(everywhere, everywhere), donate_argnums=0),
    )


def _first_variables(network: Network, key: Array) -> tuple[PyTree, PyTree]:
    """Return a network's first parameters and batch statistics.

    Raises:
      ValueError: they are not in nested dictionaries, as checkpoints are read; the first leaf
        elsewhere is named.
    """
    variables = network.init(key)
    for path, _ in jax.tree.leaves_with_path(variables):
        if not all(isinstance(key, jax.tree_util.DictKey) for key in path):
            raise ValueError(
                "the variables of a network are arrays in nested dictionaries, not in a list or "
                f"another tree, as {jax.tree_util.keystr(path)} is"
            )
    return variables["params"], variables["batch_stats"]


def _make_gradients(
    config: LearnerConfig, network: Network, game: Game, loss_fn: LossFn
) -> Callable[[TrainState, Batch], tuple[PyTree, PyTree, Array, Losses]]:
    """Return the function to gradients, new batch statistics, the loss without the L2 term, and its
    parts."""
    planes_shape, num_actions = (*game.board_shape, game.num_planes), game.num_actions

    def differentiate(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Array, Losses]:
        size = batch.value.shape[0]
        chex.assert_shape(batch.planes, (size, *planes_shape))
        chex.assert_shape(batch.weights, (size, num_actions))

        def loss(params: PyTree) -> tuple[Array, tuple[Losses, PyTree]]:
            variables = {"params": params, "batch_stats": state.batch_stats}
            outputs, batch_stats = network.train_apply(variables, batch.planes)
            losses = loss_fn(config, outputs, batch)
            total = losses.policy + config.value_weight * losses.value
            return total + weighted_sum(config, losses.auxiliary), (losses, batch_stats)

        gradient_fn = jax.value_and_grad(loss, has_aux=True)
        (total, (losses, batch_stats)), gradients = gradient_fn(state.params)
        return gradients, batch_stats, total, losses

    return differentiate


def _pure_functions(
    config: LearnerConfig, network: Network, game: Game, loss_fn: LossFn
) -> Learner:
    """Return the functions of a learner before they are compiled."""
    optimiser, schedule = make_optimiser(config), make_schedule(config)
    penalty_weight, penalise = make_penalty(config)
    differentiate = _make_gradients(config, network, game, loss_fn)

    def init(key: Array) -> TrainState:
        params, batch_stats = _first_variables(network, key)
        average = None if config.average_decay is None else params
        step = jnp.zeros((), jnp.int32)
        return TrainState(params, batch_stats, optimiser.init(params), step, average)

    def apply_gradients(state: TrainState, gradients: PyTree, batch_stats: PyTree) -> TrainState:
        updates, opt_state = optimiser.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        average = None if state.average is None else _next_average(config, state, params)
        return TrainState(params, batch_stats, opt_state, state.step + 1, average)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        gradients, batch_stats, loss, losses = differentiate(state, batch)
        gradients = penalise(gradients, state.params)
        squared = optax.tree.norm(state.params, squared=True)
        loss, l2, rate = loss + penalty_weight * squared, config.l2 * squared, schedule(state.step)
        metrics = step_metrics(loss, losses, l2, gradients, rate)
        new = apply_gradients(state, gradients, batch_stats)
        if state.average is None:
            return new, metrics
        stats = _statistics_of_average(network, state, new.average, batch.planes)
        return dataclasses.replace(new, batch_stats=stats), metrics

    def no_gradients(state: TrainState) -> PyTree:
        return jax.tree.map(jnp.zeros_like, state.params)

    def add(
        state: TrainState, gradients: PyTree, batch: Batch, share: Array
    ) -> tuple[PyTree, Metrics]:
        new, _, loss, losses = differentiate(state, batch)
        total = jax.tree.map(lambda total, part: total + share * part, gradients, new)
        l2 = config.l2 * optax.tree.norm(state.params, squared=True)
        return total, step_metrics(loss, losses, l2, new, schedule(state.step))

    def update(state: TrainState, gradients: PyTree) -> TrainState:
        return apply_gradients(state, penalise(gradients, state.params), state.batch_stats)

    return Learner(init, step, no_gradients, add, update)


def _next_average(config: LearnerConfig, state: TrainState, params: PyTree) -> PyTree:
    """Return the mean of the parameters after a step that ends with `params`. In the first steps it
    decays faster, because the first parameters are random."""
    assert config.average_decay is not None
    done = state.step.astype(jnp.float32)
    kept = jnp.minimum(config.average_decay, (done + 1.0) / (done + 10.0))
    return optax.incremental_update(params, state.average, 1.0 - kept)


def _statistics_of_average(
    network: Network, state: TrainState, average: PyTree, planes: Array
) -> PyTree:
    """Return the running statistics of batch norm for the mean of the parameters."""

    def updated() -> PyTree:
        variables = {"params": average, "batch_stats": state.batch_stats}
        return network.train_apply(variables, planes)[1]

    is_due = (state.step < _FIRST_STEPS) | (state.step % _STATISTICS_EVERY == 0)
    return jax.lax.cond(is_due, updated, lambda: state.batch_stats)


def place_samples(mesh: Mesh, samples: Samples) -> Samples:
    """Put a host batch on the devices; every host brings its share.

    This only copies, so any thread may do it. Programs that run on several devices (`unpack`,
    `train_step`) must all be started by one thread: two threads may start them in a different order
    on each device, and the sum of the gradients then deadlocks.
    """
    place = functools.partial(jax.make_array_from_process_local_data, batch_sharded(mesh))
    return jax.tree.map(place, samples)


def check_state(state: TrainState) -> None:
    """Check that everything in a learner's state is finite; waits for it.

    The loss of a step is that of the parameters before it, so only this shows what the last step
    did.

    Raises:
      FloatingPointError: something is not; the first such array is named, and the step.
    """
    if bool(_is_finite(state)):
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if not np.isfinite(jax.device_get(leaf)).all():
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            when = f"after step {state.step}" if state.step else "before the first step"
            raise FloatingPointError(f"{when} the learner's {name} is not finite")


@jax.jit
def _is_finite(tree: PyTree) -> Array:
    """Return bool[]: whether all numbers in a tree are finite."""
    finite = jax.tree.map(lambda leaf: jnp.isfinite(leaf).all(), tree)
    return jax.tree.reduce(jnp.logical_and, finite)
