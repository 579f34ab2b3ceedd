"""Points and owners as predicted by a network with score and ownership heads."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.games.go.rules import Go
from azero.players.head_estimates import Estimator, Heads
from azero.types import Array, PyTree


class PointsEstimate(NamedTuple):
    """The expected end of the game, for the side to move."""

    lead: float
    """Points ahead, komi included."""
    stdev: float
    """Standard deviation of the points."""
    ownership: np.ndarray
    """float32[H * W], 1 is the side to move's."""

    def for_opponent(self) -> PointsEstimate:
        """Return the estimate for the other side."""
        return PointsEstimate(-self.lead, self.stdev, -self.ownership)


def points_estimator(game: Game, heads: Heads) -> Estimator[PointsEstimate] | None:
    """Return the estimator of a network, whose estimates are means over all symmetries of the
    board; None where it has no score and ownership heads."""
    if not isinstance(game, Go) or not {"score", "ownership"} <= heads.names:
        return None

    def points(state: PyTree, symmetries: Array, outputs: dict[str, Array]) -> PyTree:
        chances = jax.nn.softmax(outputs["score"], axis=-1).mean(axis=0)
        points = jnp.arange(-game.num_points, game.num_points + 1, dtype=jnp.float32)
        mean = jnp.sum(chances * points)
        stdev = jnp.sqrt(jnp.maximum(jnp.sum(chances * points**2) - mean**2, 0.0))
        # A pass has no owner: zero is put in its place to transform the board back.
        owners = jnp.tanh(outputs["ownership"]).reshape(len(symmetries), -1)
        owners = jnp.pad(owners, ((0, 0), (0, 1)))
        back = jax.vmap(game.inverse_transform_policy)(owners, symmetries).mean(axis=0)
        komi = game.komi if state.komi is None else 0.5 * state.komi
        komi = jnp.where(game.to_play(state) == 0, -komi, komi)
        traced: tuple[Any, ...] = (mean + komi, stdev, back[:-1])  # numbers once it has run
        return PointsEstimate(*traced)

    return Estimator(game, heads, points)
