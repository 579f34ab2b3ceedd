"""The expected score and ownership of a game of Go, from a network with heads for them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.games.go.rules import Go
from azero.players.head_estimates import Estimator, Heads
from azero.types import Array, PyTree

SHARPNESS = 3.0
"""Factor of the ownership's logits in the lead: networks of self-play expect the mistakes of their
own games. Chosen on finished games of 9x9, whose score it has to meet
(tests/players/test_points.py)."""


class PointsEstimate(NamedTuple):
    """The expected end of the game, for the side to move."""

    lead: float
    """Points ahead, komi included."""
    stdev: float
    """Standard deviation of the points."""
    ownership: np.ndarray
    """float32[H * W] in [-1, 1]: 1 belongs to the side to move."""

    def for_opponent(self) -> "PointsEstimate":
        """Return the estimate for the other side."""
        return PointsEstimate(-self.lead, self.stdev, -self.ownership)


def points_estimator(game: Game, heads: Heads) -> Estimator[PointsEstimate] | None:
    """Return the estimator of a network, which averages over all symmetries of the board and gives
    leads without komi; None where the network has no score and ownership heads.

    The lead goes from the mean of the score head to the count of the sharpened owners, in
    proportion to how decided the board is (the mean square of the ownership).
    """
    if not isinstance(game, Go) or not {"score", "ownership"} <= heads.names:
        return None

    def points(state: PyTree, symmetries: Array, outputs: dict[str, Array]) -> PyTree:
        chances = jax.nn.softmax(outputs["score"], axis=-1).mean(axis=0)
        points = jnp.arange(-game.num_points, game.num_points + 1, dtype=jnp.float32)
        mean = jnp.sum(chances * points)
        stdev = jnp.sqrt(jnp.maximum(jnp.sum(chances * points**2) - mean**2, 0.0))
        # A pass has no owner: zero is put in its place to transform the board back.
        turned = jnp.tanh(outputs["ownership"]).reshape(len(symmetries), -1)
        turned = jnp.pad(turned, ((0, 0), (0, 1)))
        back = jax.vmap(game.inverse_transform_policy)(turned, symmetries).mean(axis=0)
        owners = back[:-1]
        sharp = jnp.tanh(SHARPNESS * jnp.arctanh(jnp.clip(owners, -0.9999, 0.9999)))
        decided = jnp.mean(owners**2)
        lead = decided * jnp.sum(sharp) + (1.0 - decided) * mean
        traced: tuple[Any, ...] = (lead, stdev, owners)  # numbers once it has run
        return PointsEstimate(*traced)

    return Estimator(game, heads, points)
