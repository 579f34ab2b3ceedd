"""Points and owners as a network with score and ownership heads expects them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.games.go.rules import Go
from azero.networks.network import Network, Outputs
from azero.search.single.packed import PackedPosition, pad_rows, unpack_state
from azero.types import Array, PyTree

_BATCH = 16
"""Positions of a call; one alone has a program of its own."""
_REMEMBERED = 2_000
"""Positions whose estimates are kept: a search reports on the same ones many times."""


class PointsEstimate(NamedTuple):
    """What is expected of the end of the game, for the side to move."""

    lead: float
    """Points ahead, komi included."""
    stdev: float
    """Standard deviation of the points."""
    ownership: np.ndarray
    """float32[H * W], 1 is the side to move's."""

    def for_opponent(self) -> PointsEstimate:
        """Return the estimate for the other side."""
        return PointsEstimate(-self.lead, self.stdev, -self.ownership)


class PointsEstimator:
    """Estimates of packed positions of Go, means over all symmetries of the board."""

    def __init__(self, game: Go, analyse: Callable[[PyTree, Array], Outputs], params: PyTree):
        """Make the estimator; nothing is compiled yet.

        Args:
          game: the rules with which the network sees positions.
          analyse: see `Network.analyse`.
          params: its inference parameters.
        """
        self._params = params
        self._found: OrderedDict[bytes, PointsEstimate] = OrderedDict()
        count = game.num_symmetries

        def estimate(params: PyTree, row: Array) -> tuple[Array, Array, Array]:
            state = unpack_state(cast(Game, game), row)
            planes, symmetries = game.observe(state), jnp.arange(count, dtype=jnp.int32)
            turned = jax.vmap(game.transform_planes, in_axes=(None, 0))(planes, symmetries)
            heads = analyse(params, turned).auxiliary
            chances = jax.nn.softmax(heads["score"], axis=-1).mean(axis=0)
            points = jnp.arange(-game.num_points, game.num_points + 1, dtype=jnp.float32)
            mean = jnp.sum(chances * points)
            stdev = jnp.sqrt(jnp.maximum(jnp.sum(chances * points**2) - mean**2, 0.0))
            # A pass has no owner: zero stands in its place to turn the board back.
            owners = jnp.tanh(heads["ownership"]).reshape(count, -1)
            owners = jnp.pad(owners, ((0, 0), (0, 1)))
            back = jax.vmap(game.inverse_transform_policy)(owners, symmetries).mean(axis=0)
            komi = game.komi if state.komi is None else 0.5 * state.komi
            komi = jnp.where(game.to_play(state) == 0, -komi, komi)
            return mean + komi, stdev, back[:-1]

        self._estimate = jax.jit(
            lambda params, rows: jax.lax.map(lambda r: estimate(params, r), rows)
        )

    def __call__(self, positions: Sequence[PackedPosition]) -> list[PointsEstimate]:
        """Return the estimates of `positions`."""
        missing = {p.content: p for p in positions if p.content not in self._found}
        new = list(missing.values())
        for start in range(0, len(new), _BATCH):
            chunk = new[start : start + _BATCH]
            rows = pad_rows([p.state for p in chunk], 1 if len(chunk) == 1 else _BATCH)
            lead, stdev, owners = jax.device_get(self._estimate(self._params, rows))
            for index, position in enumerate(chunk):
                self._found[position.content] = PointsEstimate(
                    float(lead[index]), float(stdev[index]), owners[index]
                )
        found = [self._found[position.content] for position in positions]
        while len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)
        return found

    def warm_up(self, position: PackedPosition) -> None:
        """Compile the programs."""
        for size in (1, _BATCH):
            self._estimate(self._params, pad_rows([position.state], size))


def points_estimator(game: Game, network: Network, params: PyTree) -> PointsEstimator | None:
    """Return the estimator of a network; None where it has no score and ownership heads."""
    if network.analyse is None or not isinstance(game, Go):
        return None
    return PointsEstimator(game, network.analyse, params)
