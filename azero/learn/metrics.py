"""The metrics of training steps, and the check that they are finite."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from azero.learn.losses import Losses
from azero.types import Array, PyTree

EXPLODED = 10.0
"""A policy loss of this many times that of a network for which all moves are equally likely, in the
mean over an iteration, is one that explodes (no source: an untrained network is at one, and
learning lowers it)."""
STEPS_AHEAD = 4
"""Steps that the host may start before an earlier one has ended. Without a limit the devices of
one CPU deadlock: XLA lets each have 32 programs under way, and the thread that waits to start the
next one is then not there for the device whose share of a gradient the others wait for (seen with
jax 0.10.2)."""

Metrics = dict[str, Array]
"""Scalars on the device: loss policy_loss value_loss l2 entropy target_entropy accuracy
gradient_norm learning_rate, those of auxiliary heads that are learned, and the bool is_finite."""


def step_metrics(
    loss: Array, losses: Losses, l2: Array, gradients: PyTree, learning_rate: Array
) -> Metrics:
    """Return the metrics of one step."""
    gradient_norm = optax.tree.norm(gradients)
    return {
        "loss": loss,
        "policy_loss": losses.policy,
        "value_loss": losses.value,
        "l2": l2,
        "entropy": losses.entropy,
        "target_entropy": losses.target_entropy,
        "accuracy": losses.accuracy,
        **{f"{name}_loss": loss for name, loss in losses.auxiliary.items()},
        "gradient_norm": gradient_norm,
        "learning_rate": learning_rate,
        "is_finite": jnp.isfinite(loss) & jnp.isfinite(gradient_norm),
    }


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
                f"the loss explodes: policy_loss = {means['policy_loss']:.4g} in the mean over the "
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
