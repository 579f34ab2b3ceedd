"""Estimates from the auxiliary heads of a network: draws, score and ownership
(`azero.players.points`)."""

import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from azero.games.game import Game, Scored
from azero.learn.settings import LearnerConfig
from azero.networks.network import Network
from azero.search.single.packed import PackedPosition, pad_rows, states_of, unpack_state
from azero.types import Array, PyTree

E = TypeVar("E")
"""An estimate: a number, or a tuple of numbers and arrays."""

_BATCH = 16
"""Positions evaluated together; a single one has a compiled program of its own."""
_REMEMBERED = 2_000
"""Positions whose estimates are kept: a search reports on the same ones many times."""


class Heads(NamedTuple):
    """The auxiliary heads of a network in use."""

    names: frozenset[str]
    evaluate: Callable[[Array], Mapping[str, Any]]
    """planes [P, H, W, C] -> their outputs [P, ...]"""
    result_share: float = 1.0
    """Share of results in the target of the value: only they can be draws."""

    def learned_with(self, learner: LearnerConfig) -> "Heads":
        """Return the heads without those that a run with these settings does not train."""
        share = learner.result_share
        return self._replace(names=self.names - learner.untrained_heads, result_share=share)


def network_heads(network: Network, params: PyTree) -> Heads:
    """Return the heads of a network with inference parameters; those without any have no names."""
    analyse = network.analyse
    if analyse is None:
        return Heads(frozenset(), lambda planes: {})
    evaluate = jax.jit(lambda params, planes: analyse(params, planes).auxiliary)
    return Heads(network.heads, functools.partial(evaluate, params))


class Estimator(Generic[E]):
    """Estimates of packed positions, each from all symmetries of the board."""

    def __init__(
        self,
        game: Game,
        heads: Heads,
        estimate: Callable[[PyTree, Array, dict[str, Array]], PyTree],
    ) -> None:
        """Make the estimator; nothing is compiled yet.

        Args:
          game: the rules with which the network sees positions.
          heads: of the network.
          estimate: (state, symmetries int32[S], outputs of the heads [S, ...] for the position
            through each symmetry) -> the estimate, of arrays.
        """
        self._found: OrderedDict[bytes, E] = OrderedDict()
        symmetries = jnp.arange(game.num_symmetries, dtype=jnp.int32)

        def turned_planes(row: Array) -> Array:
            planes = game.observe(unpack_state(game, row))
            return jax.vmap(game.transform_planes, in_axes=(None, 0))(planes, symmetries)

        def estimate_row(row_and_outputs: tuple[Array, dict[str, Array]]) -> PyTree:
            row, outputs = row_and_outputs
            return estimate(unpack_state(game, row), symmetries, outputs)

        observe = jax.jit(lambda rows: jnp.concatenate(jax.lax.map(turned_planes, rows)))
        finish = jax.jit(functools.partial(jax.lax.map, estimate_row))

        def estimate_rows(rows: Any) -> PyTree:
            outputs = heads.evaluate(observe(rows))
            by_row = {
                name: leaf.reshape(len(rows), len(symmetries), *leaf.shape[1:])
                for name, leaf in outputs.items()
            }
            return finish((rows, by_row))

        self._estimate = estimate_rows

    def __call__(self, positions: Sequence[PackedPosition]) -> list[E]:
        """Return the estimates of `positions`."""
        missing = {p.content: p for p in positions if p.content not in self._found}
        new = list(missing.values())
        for start in range(0, len(new), _BATCH):
            chunk = new[start : start + _BATCH]
            rows = pad_rows(states_of(chunk), 1 if len(chunk) == 1 else _BATCH)
            estimates = jax.device_get(self._estimate(rows))
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
            self._estimate(pad_rows(states_of([position]), size))


def draws_estimator(game: Game, heads: Heads) -> Estimator[float] | None:
    """Return the estimator of the probability of a draw; None where the network has a single value
    output or learned from no results, or the game is scored, where komi leaves hardly any draws.

    The rest of a value target, root values, counts as wins and losses, so that the network's output
    for a draw is `result_share` times its probability.
    """
    if "outcome" not in heads.names or not heads.result_share or isinstance(game, Scored):
        return None

    def draws(state: PyTree, symmetries: Array, outputs: dict[str, Array]) -> Array:
        output = jax.nn.softmax(outputs["outcome"], axis=-1)[:, 1].mean()
        return jnp.minimum(output / heads.result_share, 1.0)

    return Estimator(game, heads, draws)
