"""Makes a network see fewer positions of a game without changing what it computes where those left
out equal the oldest that is left: the filters of these positions are added."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from azero.types import PyTree


def see_fewer_positions(variables: PyTree, positions: int, fewer: int, per_position: int) -> PyTree:
    """Return the variables of a network that sees `fewer` positions than the given one.

    Args:
      variables: those of the given network.
      positions: how many it sees. Its planes are those of these positions, newest first, and then
        others.
      fewer: at least one.
      per_position: planes of a position.
    """

    def add_filters(path: Sequence[Any], filters: PyTree) -> PyTree:
        names = [entry.key for entry in path]
        if "stem" not in names or np.ndim(filters) != 4:  # not [3, 3, planes, channels]
            return filters
        rows, columns, _, channels = filters.shape
        split = positions * per_position
        seen = np.reshape(filters[:, :, :split], (rows, columns, positions, per_position, channels))
        oldest = seen[:, :, fewer - 1 :].sum(axis=2, keepdims=True)
        seen = np.concatenate([seen[:, :, : fewer - 1], oldest], axis=2)
        seen = seen.reshape(rows, columns, fewer * per_position, channels)
        return np.concatenate([seen, filters[:, :, split:]], axis=2)

    return jax.tree_util.tree_map_with_path(add_filters, variables)
