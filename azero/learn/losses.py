"""Equation 1 of AlphaGo Zero, (z - v)^2 - pi^T log p, the policy gradient of AlphaGo (2016), and
the losses of auxiliary heads, each a mean over the batch.

One position below, the batch above. The equation's last term, c ||theta||^2, is the learner's.
Sources: KG = Wu 2019 (arXiv 1902.10565), section 4 and appendix B; KGM = KataGo's
docs/KataGoMethods.md.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from azero.data.sample import AuxiliaryTargets, Batch
from azero.learn.settings import AUXILIARY_WEIGHTS, LearnerConfig
from azero.networks.network import NEVER
from azero.search.batched.reductions import argmax
from azero.types import Array

_SOFTNESS = 4.0
"""Temperature of the soft policy's target (KGM)."""


class Losses(NamedTuple):
    """Scalars float32[] over one batch."""

    policy: Array
    """Mean cross-entropy (nats) over the positions that have a policy target."""
    value: Array
    """Mean squared error of the value in [-1, 1]; with REINFORCE the mean squared advantage."""
    entropy: Array
    """Mean entropy (nats) of the network's policy."""
    target_entropy: Array
    """Mean entropy (nats) of the policy targets: what `policy` would be at best."""
    accuracy: Array
    """Share of positions whose most probable move is the target's."""
    auxiliary: dict[str, Array]
    """Those of the auxiliary heads that are learned, by the heads' names."""


def policy_loss(logits: Array, weights: Array) -> Array:
    """Return -pi^T log p of one position; logits and weights float32[A]."""
    return -jnp.sum(weights * jax.nn.log_softmax(logits))


def value_loss(value: Array, target: Array) -> Array:
    """Return (z - v)^2 of one position; both float32[]."""
    return jnp.square(target - value)


def entropy(probabilities: Array) -> Array:
    """Return the entropy in nats of float32[A]; zero probabilities count zero."""
    return -jnp.sum(jax.scipy.special.xlogy(probabilities, probabilities))


def outcome_target(result: Array, searched: Array, share: float) -> Array:
    """Return the probabilities of loss, draw and win float32[B, 3]: those of the result float32[B],
    of which zero is a draw, times 1 - `share`; and those of `searched` float32[B], `share` times
    values of searches, which are means of wins and losses."""

    def decided(value: Array, total: float) -> Array:
        return jnp.stack([total - value, jnp.zeros_like(value), total + value], axis=-1) / 2.0

    drawn = jnp.array([0.0, 1.0, 0.0], jnp.float32)
    ended = jnp.where((result == 0.0)[:, None], drawn, decided(result, 1.0))
    return (1.0 - share) * ended + decided(searched, share)


def batch_losses(
    logits: Array,
    value: Array,
    weights: Array,
    target: Array,
    outcome: tuple[Array, Array] | None = None,
    importance: Array | None = None,
) -> Losses:
    """Average the losses over a (global) batch: logits float32[B, A], unmasked, and values
    float32[B] against weights float32[B, A] and targets float32[B].

    A row of weights that are zero, except for moves that the network does not have, is not a policy
    target and is left out of the policy's averages. `outcome` are logits and probabilities
    float32[B, 3] of loss, draw and win, whose cross-entropy is then the loss of the value; None is
    its squared error. `importance` float32[B] are the weights of the positions in the losses, with
    a mean of about one; None is one for all.
    """
    weights = jnp.where(logits > NEVER, weights, 0.0)
    importance = jnp.ones_like(target) if importance is None else importance
    mean_with_target = functools.partial(mean_where, jnp.any(weights > 0, axis=-1))
    values = (
        jax.vmap(value_loss)(value, target) if outcome is None else jax.vmap(policy_loss)(*outcome)
    )
    hits = argmax(jax.lax.stop_gradient(logits)) == argmax(weights)
    return Losses(
        policy=mean_with_target(importance * jax.vmap(policy_loss)(logits, weights)),
        value=jnp.mean(importance * values),
        entropy=jnp.mean(jax.vmap(entropy)(jax.nn.softmax(logits))),
        target_entropy=mean_with_target(jax.vmap(entropy)(weights)),
        accuracy=mean_with_target(hits.astype(jnp.float32)),
        auxiliary={},
    )


def reinforce_losses(logits: Array, advantage: Array, weights: Array, allowed: Array) -> Losses:
    """Return the losses of REINFORCE (Williams 1992; AG16 methods, 'Policy network: RL').

    The gradient of `policy` is minus that of the mean of (z - v) log p(a) over the positions of the
    batch that have a move.

    Args:
      logits: float32[B, A], unmasked.
      advantage: float32[B], the result z of the game for the side that moved, minus what was
        expected of the position, v.
      weights: float32[B, A], one on the move a; a row of zeros is not a position, and is left out.
      allowed: bool[B, A], the moves that a was drawn from: p is the softmax over these.
    """
    log_probability = jax.nn.log_softmax(jnp.where(allowed, logits, NEVER))
    mean = functools.partial(mean_where, jnp.any(weights > 0, axis=-1))
    hits = argmax(jax.lax.stop_gradient(log_probability)) == argmax(weights)
    return Losses(
        policy=mean(-advantage * jnp.sum(weights * log_probability, axis=-1)),
        value=mean(jnp.square(advantage)),
        entropy=mean(jax.vmap(entropy)(jnp.exp(log_probability))),
        target_entropy=jnp.zeros((), jnp.float32),
        accuracy=mean(hits.astype(jnp.float32)),
        auxiliary={},
    )


def mean_where(known: Array, losses: Array) -> Array:
    """Return the mean of float32[B] where bool[B] `known` holds, 0 where it never does."""
    count = jnp.maximum(1, jnp.sum(known)).astype(jnp.float32)
    return jnp.sum(jnp.where(known, losses, jnp.zeros_like(losses))) / count


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
      ValueError: it lacks one; the setting is named.
    """
    for name, setting in AUXILIARY_WEIGHTS.items():
        if _weight(config, name) > 0 and name not in heads:
            raise ValueError(
                f"learner.{setting.replace('_', '-')}: the network has no head {name!r} in this "
                f"game; it has {', '.join(sorted(heads)) or 'only policy and value'}"
            )


def _weight(config: LearnerConfig, head: str) -> float:
    return getattr(config, AUXILIARY_WEIGHTS[head])
