"""Losses of auxiliary heads, each a mean over the batch.

Sources: KG = Wu 2019 (arXiv 1902.10565), section 4 and appendix B; KGM = KataGo's
docs/KataGoMethods.md.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from azero.data.sample import AuxiliaryTargets, Batch
from azero.learn.losses import mean_where, policy_loss
from azero.learn.settings import AUXILIARY_WEIGHTS, LearnerConfig
from azero.types import Array

_SOFTNESS = 4.0
"""Temperature of the soft policy's target (KGM)."""


def ownership_loss(logits: Array, batch: Batch, targets: AuxiliaryTargets) -> Array:
    """Return the cross-entropy of the owners of the points of games that were scored, in nats a
    point; tanh of logits float32[B, H, W] is the expected owner (KG)."""
    assert targets.ownership is not None and targets.is_scored is not None
    losses = optax.sigmoid_binary_cross_entropy(2.0 * logits, 0.5 * (1.0 + targets.ownership))
    return mean_where(targets.is_scored, losses.mean(axis=(1, 2)))


def score_loss(logits: Array, batch: Batch, targets: AuxiliaryTargets) -> Array:
    """Return the cross-entropy of the margin's distribution, logits float32[B, 2 N + 1] from -N to
    N points, and the summed squared differences of the cumulative distributions (KG)."""
    assert targets.margin is not None and targets.is_scored is not None
    place = targets.margin.astype(jnp.int32) + logits.shape[-1] // 2
    reached = jax.nn.one_hot(place, logits.shape[-1])
    beyond = jnp.cumsum(jax.nn.softmax(logits) - reached, axis=-1)
    losses = jax.vmap(policy_loss)(logits, reached) + jnp.sum(jnp.square(beyond), axis=-1)
    return mean_where(targets.is_scored, losses)


def reply_loss(logits: Array, batch: Batch, targets: AuxiliaryTargets) -> Array:
    """Return the cross-entropy of the opponent's policy in the next position (KG)."""
    losses = jax.vmap(policy_loss)(logits, targets.reply)
    return mean_where(jnp.any(targets.reply > 0, axis=-1), losses)


def soft_policy_loss(logits: Array, batch: Batch, targets: AuxiliaryTargets) -> Array:
    """Return the cross-entropy of the policy target with a temperature (KGM)."""
    soft = jnp.where(batch.weights > 0, batch.weights, 0.0) ** (1.0 / _SOFTNESS)
    total = jnp.sum(soft, axis=-1, keepdims=True)
    losses = jax.vmap(policy_loss)(logits, soft / jnp.where(total > 0, total, 1.0))
    return mean_where(total[:, 0] > 0, losses)


def short_value_loss(values: Array, batch: Batch, targets: AuxiliaryTargets) -> Array:
    """Return the mean squared error of the means of future root values (KGM)."""
    return jnp.mean(jnp.square(values - targets.later))


def moves_left_loss(moves: Array, batch: Batch, targets: AuxiliaryTargets) -> Array:
    """Return the Huber loss of the moves left, as a share of the board's points."""
    return jnp.mean(optax.huber_loss(moves, targets.moves_left))


LOSSES: dict[str, Callable[[Array, Batch, AuxiliaryTargets], Array]] = {
    "ownership": ownership_loss,
    "score": score_loss,
    "reply": reply_loss,
    "soft_policy": soft_policy_loss,
    "short_values": short_value_loss,
    "moves_left": moves_left_loss,
}
"""The losses of the heads in `AUXILIARY_WEIGHTS`."""


def auxiliary_losses(
    config: LearnerConfig, heads: dict[str, Array], batch: Batch
) -> dict[str, Array]:
    """Return the losses of the heads whose weight is not zero, by the heads' names."""
    learned = [name for name in LOSSES if _weight(config, name) > 0]
    if not learned:
        return {}
    assert batch.auxiliary is not None, "the replay keeps no targets of auxiliary heads"
    return {name: LOSSES[name](heads[name], batch, batch.auxiliary) for name in learned}


def weighted_sum(config: LearnerConfig, losses: dict[str, Array]) -> Array:
    """Return the weighted sum of the losses."""
    total = jnp.zeros((), jnp.float32)
    for name, loss in losses.items():
        total += _weight(config, name) * loss
    return total


def check_heads(config: LearnerConfig, heads: frozenset[str]) -> None:
    """Check that a network has the heads that are to be learned.

    Raises:
      ValueError: it has not; the setting is named.
    """
    for name, setting in AUXILIARY_WEIGHTS.items():
        if _weight(config, name) > 0 and name not in heads:
            raise ValueError(
                f"learner.{setting.replace('_', '-')}: the network has no head {name!r} in this "
                f"game; it has {', '.join(sorted(heads)) or 'only policy and value'}"
            )


def _weight(config: LearnerConfig, head: str) -> float:
    return getattr(config, AUXILIARY_WEIGHTS[head])
