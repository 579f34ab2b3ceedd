"""Estimates from the auxiliary heads of a network: draws, points and owners
(`azero.players.points`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from azero.games.game import Game, Scored
from azero.networks.network import Network, Outputs
from azero.search.single.packed import PackedPosition, pad_rows, states_of, unpack_state
from azero.types import Array, PyTree

E = TypeVar("E")
"""An estimate: a number, or a tuple of numbers and arrays."""

_BATCH = 16
"""Positions of a call; one alone has a program of its own."""
_REMEMBERED = 2_000
"""Positions whose estimates are kept: a search reports on the same ones many times."""


class Estimator(Generic[E]):
    """Estimates of packed positions, each from all symmetries of the board."""

    def __init__(
        self,
        game: Game,
        analyse: Callable[[PyTree, Array], Outputs],
        params: PyTree,
        estimate: Callable[[PyTree, Array, dict[str, Array]], PyTree],
    ) -> None:
        """Make the estimator; nothing is compiled yet.

        Args:
          game: the rules with which the network sees positions.
          analyse: see `Network.analyse`.
          params: its inference parameters.
          estimate: (state, symmetries int32[S], auxiliary outputs [S, ...] of the position through
            each symmetry) -> the estimate, of arrays.
        """
        self._params = params
        self._found: OrderedDict[bytes, E] = OrderedDict()

        def estimate_row(params: PyTree, row: Array) -> PyTree:
            state = unpack_state(game, row)
            planes = game.observe(state)
            symmetries = jnp.arange(game.num_symmetries, dtype=jnp.int32)
            turned = jax.vmap(game.transform_planes, in_axes=(None, 0))(planes, symmetries)
            return estimate(state, symmetries, analyse(params, turned).auxiliary)

        self._estimate = jax.jit(
            lambda params, rows: jax.lax.map(lambda row: estimate_row(params, row), rows)
        )

    def __call__(self, positions: Sequence[PackedPosition]) -> list[E]:
        """Return the estimates of `positions`."""
        missing = {p.content: p for p in positions if p.content not in self._found}
        new = list(missing.values())
        for start in range(0, len(new), _BATCH):
            chunk = new[start : start + _BATCH]
            rows = pad_rows(states_of(chunk), 1 if len(chunk) == 1 else _BATCH)
            estimates = jax.device_get(self._estimate(self._params, rows))
            for index, position in enumerate(chunk):
                self._found[position.content] = jax.tree.map(
                    lambda leaf, i=index: leaf[i] if leaf.ndim > 1 else float(leaf[i]), estimates
                )
        found = [self._found[position.content] for position in positions]
        while len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)
        return found

    def warm_up(self, position: PackedPosition) -> None:
        """Compile the programs."""
        for size in (1, _BATCH):
            self._estimate(self._params, pad_rows(states_of([position]), size))


def draws_estimator(game: Game, network: Network, params: PyTree) -> Estimator[float] | None:
    """Return the estimator of the probability of a draw; None where the network has one value, or
    the game is one of points, whose komi leaves hardly any draws."""
    if network.analyse is None or "outcome" not in network.heads or isinstance(game, Scored):
        return None

    def draws(state: PyTree, symmetries: Array, heads: dict[str, Array]) -> Array:
        return jax.nn.softmax(heads["outcome"], axis=-1)[:, 1].mean()

    return Estimator(game, network.analyse, params, draws)
