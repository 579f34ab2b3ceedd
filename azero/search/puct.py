"""The PUCT formula, for many games at once on the devices and for one game on the host.

`maths` is where log and sqrt come from: `jax.numpy` for arrays, `math` for numbers of the host.
"""

from __future__ import annotations

from typing import Any


def puct_score(values: Any, priors: Any, visits: Any, scale: Any) -> Any:
    """Return Q + c sqrt(N) P / (1 + n): values, priors and visits [..., A], scale c sqrt(N)."""
    return values + scale * priors / (1.0 + visits)


def alphago_zero_scale(total: Any, c_puct: float, maths: Any) -> Any:
    """Return c_puct sqrt(N), N the visits of all moves, for values in [-1, 1] (AGZ, "Select")."""
    return c_puct * maths.sqrt(total)


def alphazero_scale(total: Any, c_base: float, c_init: float, maths: Any) -> Any:
    """Return (log((N + base + 1) / base) + init) sqrt(N), for values in [0, 1] (AZ pseudocode).

    N is the visits of all moves, `total`, and the node's own evaluation.
    """
    visits = 1.0 + total
    return (maths.log((visits + c_base + 1.0) / c_base) + c_init) * maths.sqrt(visits)
