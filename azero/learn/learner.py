"""One train step for every stage: plain `jit`, parameters replicated, the batch split over devices.

Under `jit` the batch is one global array, so losses, gradients and batch-norm statistics are those
of the whole batch on any number of devices.
"""

from __future__ import annotations

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
from azero.learn.losses import Losses, batch_losses, reinforce_losses
from azero.learn.optimiser import make_optimiser, make_penalty, make_schedule
from azero.learn.settings import LearnerConfig
from azero.mesh import batch_sharded, check_divides, replicated
from azero.networks.network import Network
from azero.types import Array, PyTree

EXPLODED = 10.0
"""A policy loss of so many times that of a network for which all moves are equally likely, in the
mean over an iteration, is one that explodes (no source: an untrained network is at one, and
learning lowers it)."""
STEPS_AHEAD = 4
"""Steps that the host may start before an earlier one has ended. Without a limit the devices of
one CPU wait for each other for ever: XLA lets each have 32 programs under way, and the thread that
waits to start the next one is then missing to the device whose share of a gradient the others wait
for (seen with jax 0.10.2)."""

Metrics = dict[str, Array]
"""Scalars on the device: loss policy_loss value_loss l2 entropy target_entropy accuracy
gradient_norm learning_rate, and the bool is_finite."""


@struct.dataclass
class TrainState:
    """All that training changes; arrays only, a copy on every device."""

    params: PyTree
    batch_stats: PyTree
    opt_state: PyTree
    step: Array
    """int32[]: training steps done."""

    @property
    def variables(self) -> PyTree:
        """The network's variables, as `Network.apply` and `Network.fold` take them."""
        return {"params": self.params, "batch_stats": self.batch_stats}


LossFn = Callable[[Array, Array, Batch], Losses]
"""(logits [B, A], value [B], batch) -> what is minimised: the policy's loss, plus the value's times
`value_weight`."""


def prediction_loss(logits: Array, value: Array, batch: Batch) -> Losses:
    """Equation 1 of AlphaGo Zero without its last term, which is `make_penalty`'s."""
    return batch_losses(logits, value, batch.weights, batch.value)


def reinforce_loss(logits: Array, value: Array, batch: Batch) -> Losses:
    """Return the policy gradient of AlphaGo (2016).

    `batch.value` is the advantage, `batch.weights` one on the move played.
    """
    del value
    assert batch.allowed is not None, "REINFORCE needs to know which moves the policy chose from"
    return reinforce_losses(logits, batch.value, batch.weights, batch.allowed)


class Learner(NamedTuple):
    """Training as pure, compiled functions. States passed in are donated: use what comes back."""

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
    init, step, add, update = _pure_functions(config, network, game, loss_fn)
    everywhere, split = replicated(mesh), batch_sharded(mesh)
    compiled = functools.partial(jax.jit, out_shardings=everywhere)

    def no_gradients(state: TrainState) -> PyTree:
        return jax.tree.map(jnp.zeros_like, state.params)

    return Learner(
        init=compiled(init),
        train_step=compiled(step, in_shardings=(everywhere, split), donate_argnums=0),
        no_gradients=compiled(no_gradients),
        add_gradients=compiled(
            add,
            in_shardings=(everywhere, everywhere, split, everywhere),
            donate_argnums=1,
        ),
        update=compiled(update, in_shardings=(everywhere, everywhere), donate_argnums=0),
    )


class _PureFunctions(NamedTuple):
    """What a learner compiles; see `Learner`."""

    init: Callable[[Array], TrainState]
    step: Callable[[TrainState, Batch], tuple[TrainState, Metrics]]
    add: Callable[[TrainState, PyTree, Batch, Array], tuple[PyTree, Metrics]]
    update: Callable[[TrainState, PyTree], TrainState]


def _pure_functions(
    config: LearnerConfig,
    network: Network,
    game: Game,
    loss_fn: LossFn,
) -> _PureFunctions:
    optimiser, schedule = make_optimiser(config), make_schedule(config)
    penalty_weight, penalise = make_penalty(config)
    planes_shape, num_actions = (*game.board_shape, game.num_planes), game.num_actions

    def init(key: Array) -> TrainState:
        variables = network.init(key)
        params, batch_stats = variables["params"], variables["batch_stats"]
        return TrainState(params, batch_stats, optimiser.init(params), jnp.zeros((), jnp.int32))

    def differentiate(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Array, Losses]:
        """Return gradients, new batch statistics, the loss without the L2 term, its parts."""
        size = batch.value.shape[0]
        chex.assert_shape(batch.planes, (size, *planes_shape))
        chex.assert_shape(batch.weights, (size, num_actions))

        def loss(params: PyTree) -> tuple[Array, tuple[Losses, PyTree]]:
            variables = {"params": params, "batch_stats": state.batch_stats}
            outputs, batch_stats = network.train_apply(variables, batch.planes)
            losses = loss_fn(outputs.logits, outputs.value, batch)
            return losses.policy + config.value_weight * losses.value, (losses, batch_stats)

        gradient_fn = jax.value_and_grad(loss, has_aux=True)
        (total, (losses, batch_stats)), gradients = gradient_fn(state.params)
        return gradients, batch_stats, total, losses

    def move(state: TrainState, gradients: PyTree, batch_stats: PyTree) -> TrainState:
        updates, opt_state = optimiser.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return TrainState(params, batch_stats, opt_state, state.step + 1)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        gradients, batch_stats, loss, losses = differentiate(state, batch)
        gradients = penalise(gradients, state.params)
        squared = optax.tree.norm(state.params, squared=True)
        loss, l2, rate = loss + penalty_weight * squared, config.l2 * squared, schedule(state.step)
        metrics = _metrics(loss, losses, l2, gradients, rate)
        return move(state, gradients, batch_stats), metrics

    def add(
        state: TrainState,
        gradients: PyTree,
        batch: Batch,
        share: Array,
    ) -> tuple[PyTree, Metrics]:
        new, _, loss, losses = differentiate(state, batch)
        total = jax.tree.map(lambda total, part: total + share * part, gradients, new)
        l2 = config.l2 * optax.tree.norm(state.params, squared=True)
        return total, _metrics(loss, losses, l2, new, schedule(state.step))

    def update(state: TrainState, gradients: PyTree) -> TrainState:
        return move(state, penalise(gradients, state.params), state.batch_stats)

    return _PureFunctions(init, step, add, update)


def place_samples(mesh: Mesh, samples: Samples) -> Samples:
    """Put a host batch on the devices; every host brings its share.

    This only copies, so any thread may do it. Programs that run on several devices (`unpack`,
    `train_step`) must all be started by one thread: two threads start them on each device in
    another order, and then a device that waits for the sum of the gradients waits for ever.
    """
    place = functools.partial(jax.make_array_from_process_local_data, batch_sharded(mesh))
    return jax.tree.map(place, samples)


class StepMetrics:
    """The metrics of several steps, as they are started.

    The host stays at most `STEPS_AHEAD` steps ahead of the devices.
    """

    def __init__(self, first_step: int = 0, num_actions: int | None = None) -> None:
        """Begin after `first_step` training steps.

        `num_actions` are those of a policy that is learned by its cross-entropy, None where there
        is none.
        """
        self._first_step = first_step
        self._num_actions = num_actions
        self._steps: list[Metrics] = []

    def add(self, metrics: Metrics) -> None:
        """Take the metrics of the step just started; wait for the one `STEPS_AHEAD` before it."""
        self._steps.append(metrics)
        if len(self._steps) > STEPS_AHEAD:
            jax.block_until_ready(self._steps[-1 - STEPS_AHEAD])

    def means(self) -> dict[str, float]:
        """Return the means over the steps, and the last learning rate. Waits for the steps.

        Raises:
          FloatingPointError: a loss or gradient is not finite (see `check_finite`), or the loss
            explodes (see `EXPLODED`).
        """
        metrics = jax.tree.map(lambda *values: np.stack(values), *jax.device_get(self._steps))
        check_finite(metrics, self._first_step)
        del metrics["is_finite"]
        means = {name: float(np.mean(values)) for name, values in metrics.items()}
        uniform = np.log(self._num_actions) if self._num_actions else np.inf
        if means["policy_loss"] > EXPLODED * uniform:
            steps = f"{self._first_step + 1} to {self._first_step + len(self._steps)}"
            raise FloatingPointError(
                f"the loss explodes: policy_loss = {means['policy_loss']:.4g} in the mean "
                f"over the "
                f"steps {steps}, more than {EXPLODED:g} times the {uniform:.3g} of a network for "
                "which all moves are equally likely"
            )
        means["learning_rate"] = float(metrics["learning_rate"][-1])
        return means


def check_finite(metrics: Metrics, first_step: int = 0) -> None:
    """Stop at the first loss or gradient that is not a number; waits for the step.

    `metrics` begin after `first_step` training steps.

    Raises:
      FloatingPointError: with the first such step (where `metrics` hold several) and the values of
        its metrics.
    """
    finite = np.atleast_1d(np.asarray(metrics["is_finite"]))
    if finite.all():
        return
    first = int(np.argmin(finite))
    numbers = {name: np.ravel(values)[first] for name, values in metrics.items()}
    del numbers["is_finite"]
    listed = ", ".join(f"{name} = {value:g}" for name, value in numbers.items())
    raise FloatingPointError(f"the loss is not finite at step {first_step + first + 1}: {listed}")


def check_state(state: TrainState) -> None:
    """Check that everything in a learner's state is finite; waits for it.

    Losses are those of before a step, so that what its last step made shows here.

    Raises:
      FloatingPointError: something is not; the first such array is named, and the step.
    """
    if bool(_is_finite(state)):
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if not np.isfinite(jax.device_get(leaf)).all():
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            step = int(state.step)
            raise FloatingPointError(f"after step {step} the learner's {name} is not finite")


@jax.jit
def _is_finite(tree: PyTree) -> Array:
    """Return bool[]: whether all numbers in a tree are finite."""
    finite = jax.tree.map(lambda leaf: jnp.isfinite(leaf).all(), tree)
    return jax.tree.reduce(jnp.logical_and, finite)


def _metrics(
    loss: Array,
    losses: Losses,
    l2: Array,
    gradients: PyTree,
    learning_rate: Array,
) -> Metrics:
    gradient_norm = optax.tree.norm(gradients)
    return {
        "loss": loss,
        "policy_loss": losses.policy,
        "value_loss": losses.value,
        "l2": l2,
        "entropy": losses.entropy,
        "target_entropy": losses.target_entropy,
        "accuracy": losses.accuracy,
        "gradient_norm": gradient_norm,
        "learning_rate": learning_rate,
        "is_finite": jnp.isfinite(loss) & jnp.isfinite(gradient_norm),
    }
