"""Rollouts with memory: a leaf with a table that is passed from call to call, such as good
replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.search.single.evaluator import legal_policies
from azero.search.single.packed import PackedPosition, pad_rows, states_of, unpack_state
from azero.types import Array, PyTree

RememberingLeafFn = Callable[[PyTree, Array, PyTree, Array], tuple[Array, Array, Array]]
"""(params, key, states[B], table) -> (prior logits float32[B, A], value float32[B], table)

The value is for the side to move."""


class RememberingRollouts:
    """`azero.search.single.mixed.AskFn` around such a leaf, on one device."""

    def __init__(
        self,
        game: Game,
        leaf: RememberingLeafFn,
        params: PyTree,
        table: Array,
        *,
        batch: int,
        seed: int,
    ) -> None:
        """Make rollouts for `batch` positions at a time.

        Smaller batches are padded with copies; the table learns from these, too.
        """

        def evaluate(
            params: PyTree,
            call: Array,
            rows: Array,
            table: Array,
        ) -> tuple[Array, Array, Array]:
            key = jax.random.fold_in(jax.random.key(seed), call)
            states = jax.vmap(lambda row: unpack_state(game, row))(rows)
            logits, values, table = leaf(params, key, states, table)
            return logits.astype(jnp.float32), values.astype(jnp.float32), table

        self._evaluate = jax.jit(evaluate, donate_argnums=3)
        self._params = jax.device_put(params)
        self._batch = batch
        self._calls = 0
        self.table = jnp.array(table)
        """The table after the latest call."""

    def __call__(self, positions: Sequence[PackedPosition]) -> tuple[np.ndarray, np.ndarray]:
        """Return policies float32[P, A] over the legal moves and values float32[P]."""
        logits, values = [], []
        for start in range(0, len(positions), self._batch):
            states = states_of(positions[start : start + self._batch])
            rows = pad_rows(states, self._batch)
            self._calls += 1
            found = self._evaluate(self._params, np.uint32(self._calls), rows, self.table)
            self.table = found[2]
            logits.append(np.asarray(found[0])[: len(states)])
            values.append(np.asarray(found[1])[: len(states)])
        legal = np.stack([position.legal for position in positions])
        return legal_policies(np.concatenate(logits), legal), np.concatenate(values)
