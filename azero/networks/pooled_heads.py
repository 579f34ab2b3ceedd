"""The heads of the network with global pooling.

Sources: KG = Wu 2019 (arXiv 1902.10565), section 4 and appendix A.4 and A.5; KGM = KataGo's
docs/KataGoMethods.md. In a game of points and pass, the logit of pass comes from the pooled
features of the policy head; in a game with the same number of moves on every square, the logits
have the order of `azero.networks.resnet.PlanesHead`. Auxiliary heads, by their name in
`Outputs.auxiliary`, float32:

    outcome       [B, 3] logits of loss, draw, win for the side to move
    reply         [B, A] logits of the opponent's reply (KG 4.1), on squares as the side to move
                  sees them
    soft_policy   [B, A] logits of the softened policy (KGM, 'Auxiliary Soft Policy Target')
    short_values  [B, 3] in [-1, 1]: averages of future root values, over three horizons (KGM)
    moves_left    [B] moves to the end of the game, divided by the number of points
    ownership     [B, H, W] logits, positive where the side to move will own the point (KG 4.2);
                  tanh gives the expected owner. Only in games of points and pass, like score.
    score         [B, 2HW + 1] logits of the side to move's area less the opponent's, -HW to HW
                  points, without komi (KG 4.2)
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from azero.networks.inference import dense
from azero.networks.network import Outputs, Shapes
from azero.networks.pooled_layers import (
    HE,
    LECUN,
    SMALL,
    Norms,
    ParamSpec,
    bias_by_pooled,
    dense_specs,
    fold_first,
    norm_specs,
    pool_for_value,
)
from azero.networks.resnet import pointwise
from azero.networks.settings import PooledConfig
from azero.types import Array, PyTree

POLICIES = ("policy", "reply", "soft_policy")
"""The policies whose logits the last layer of the policy head has, in order."""
NUM_HORIZONS = 3
"""Horizons of the short-term values (KGM, 'Short-term Value and Score Targets')."""
SCORE_SCALE = 0.05
"""Factor of the score as an input of its logit (KG, appendix A.5)."""


def head_specs(config: PooledConfig, game: Shapes) -> PyTree:
    """Return the specs of the parameters of the heads.

    Raises:
      ValueError: the actions are neither the points and pass nor the same number for every square.
    """
    points, head = math.prod(game.board_shape), config.head_filters
    has_pass = game.num_actions == points + 1
    if not has_pass and game.num_actions % points:
        raise ValueError(
            f"network.name pooled is for games whose moves are the points and a pass, or as many "
            f"on every square, not for {game.num_actions} moves on {points} points"
        )
    moves = 1 if has_pass else game.num_actions // points
    policy = {
        "first": ParamSpec(HE, (config.filters, 2 * head)),
        "pool": norm_specs(head),
        "pooled_bias": ParamSpec(SMALL, (3 * head, head)),
        "middle": norm_specs(head),
        "moves": {
            "kernel": ParamSpec(LECUN, (head, moves), (len(POLICIES),)),
            "bias": ParamSpec(jax.nn.initializers.zeros, (moves,), (len(POLICIES),)),
        },
    }
    value = {
        "first": ParamSpec(HE, (config.filters, head)),
        "middle": norm_specs(head),
        "hidden": dense_specs(3 * head, config.value_hidden, HE),
        "outcome": dense_specs(config.value_hidden, 3),
        "short_values": dense_specs(config.value_hidden, NUM_HORIZONS),
        "moves_left": dense_specs(config.value_hidden, 1),
    }
    if has_pass:
        policy["pass"] = dense_specs(3 * head, len(POLICIES))
        value["ownership"] = dense_specs(head, 1)
        value["score"] = {
            "hidden": dense_specs(3 * head, config.score_hidden, HE),
            "place": ParamSpec(HE, (2, config.score_hidden)),
            "last": ParamSpec(LECUN, (config.score_hidden, 1)),
        }
    return {"policy": policy, "value": value}


def head_names(specs: PyTree) -> frozenset[str]:
    """Return the names of the auxiliary heads in the specs of a network's parameters."""
    return frozenset(POLICIES[1:]) | (specs["value"].keys() - {"first", "middle", "hidden"})


def heads(
    make_norms: Callable[[PyTree, PyTree], Norms], params: PyTree, stats: PyTree, x: Array
) -> tuple[Outputs, PyTree]:
    """Return the outputs of the heads in `params` for features float32[B, H, W, F], and their new
    running statistics.

    `make_norms` makes the norms of a layer from its parameters and statistics.
    """
    norms = {name: make_norms(params[name], stats.get(name, {})) for name in ("policy", "value")}
    logits = _policies(norms["policy"], params["policy"], x)
    value, others = _values(norms["value"], params["value"], x)
    others |= dict(zip(POLICIES[1:], logits[1:], strict=False))  # none where folded
    new_stats = {name: norm.new_stats for name, norm in norms.items() if norm.new_stats}
    return Outputs(logits[0], value, others), new_stats


def _policies(norms: Norms, params: PyTree, x: Array) -> list[Array]:
    """Return the logits [B, A] of the policy and of the other POLICIES in `params`."""
    y, pooled = bias_by_pooled(norms, params["pooled_bias"], pointwise(x, params["first"]))
    last = params["moves"]
    passes = dense(params["pass"], pooled) if "pass" in params else None
    logits = []
    for index in range(last["bias"].shape[0]):
        layer = {"kernel": last["kernel"][index], "bias": last["bias"][index]}
        moves = dense(layer, y).reshape(x.shape[0], -1)
        if passes is not None:
            moves = jnp.concatenate([moves, passes[:, index : index + 1]], axis=-1)
        logits.append(moves)
    return logits


def _values(norms: Norms, params: PyTree, x: Array) -> tuple[Array, dict[str, Array]]:
    """Return the value [B], and the auxiliary outputs of the value head."""
    y = jax.nn.relu(norms("middle", pointwise(x, params["first"])))
    pooled = pool_for_value(y)
    hidden = jax.nn.relu(dense(params["hidden"], pooled))
    outcome = dense(params["outcome"], hidden)
    chances = jax.nn.softmax(outcome)
    others = {"outcome": outcome}
    if "short_values" in params:
        others["short_values"] = jnp.tanh(dense(params["short_values"], hidden))
        others["moves_left"] = jax.nn.softplus(dense(params["moves_left"], hidden))[:, 0]
    if "ownership" in params:
        others["ownership"] = dense(params["ownership"], y)[..., 0]
        others["score"] = _score(params["score"], pooled, x.shape[1] * x.shape[2])
    return chances[:, 2] - chances[:, 0], others


def _score(params: PyTree, pooled: Array, points: int) -> Array:
    """Return the logits [B, 2 points + 1] of all scores, each from the pooled features, the score,
    and whether its parity is that of the board (KG, appendix A.5, without its last scaling)."""
    scores = jnp.arange(-points, points + 1, dtype=jnp.float32)
    inputs = jnp.stack([SCORE_SCALE * scores, jnp.mod(scores + points, 2.0) - 0.5], axis=-1)
    place = jnp.dot(inputs, params["place"], precision=lax.Precision.HIGHEST)
    hidden = jax.nn.relu(dense(params["hidden"], pooled)[:, None] + place[None])
    return jnp.dot(hidden, params["last"], precision=lax.Precision.HIGHEST)[..., 0]


def fold_heads(params: PyTree, stats: PyTree, epsilon: float) -> PyTree:
    """Return the inference parameters of the heads that inference keeps: policy, outcome (and so
    the value), ownership and score."""
    policy = fold_first(params["policy"], stats.get("policy", {}), epsilon)
    policy["moves"] = {name: leaf[:1] for name, leaf in policy["moves"].items()}
    if "pass" in policy:
        policy["pass"] = {name: leaf[..., :1] for name, leaf in policy["pass"].items()}
    value = fold_first(params["value"], stats.get("value", {}), epsilon)
    trained_alone = ("short_values", "moves_left")
    return {
        "policy": policy,
        "value": {name: layer for name, layer in value.items() if name not in trained_alone},
    }
