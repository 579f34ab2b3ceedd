"""The PUCT formula, for many games at once on the devices and for one game on the host.

`maths` is the module with log and sqrt: `jax.numpy` for arrays, `math` for Python numbers.
"""

from typing import Any, Literal

from azero.search.settings import PuctConfig

Unvisited = Literal["reduction", "loss", "draw"]
"""First-play urgency, the value of an unvisited move: see `unvisited_of`."""
UNVISITED_VALUES = {"loss": -1.0, "draw": 0.0}
"""In [-1, 1], for those that do not depend on the node."""


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


def unvisited_of(config: PuctConfig) -> tuple[Unvisited, float]:
    """Return the first-play urgency: an unvisited move counts as a draw (AGZ), a loss (AZ
    pseudocode), or the value of the node less a reduction; and that reduction, see `reduced_value`.

    Raises:
      ValueError: `config.first_play` or `config.puct_form` is unknown.
    """
    forms: dict[str, Unvisited] = {"alphago_zero": "draw", "alphazero": "loss"}
    if config.puct_form not in forms:
        raise ValueError(f"search.puct-form is {' or '.join(forms)}, not {config.puct_form!r}")
    ways: dict[str, Unvisited] = {
        "form": forms[config.puct_form],
        "zero": "draw",
        "parent": "reduction",
        "reduced": "reduction",
    }
    if config.first_play not in ways:
        raise ValueError(
            f"search.first-play is one of {', '.join(ways)}, not {config.first_play!r}"
        )
    is_parent = config.first_play == "parent"
    return ways[config.first_play], 0.0 if is_parent else config.first_play_reduction


def reduced_value(value: Any, explored: Any, reduction: float, maths: Any) -> Any:
    """Return V - reduction sqrt(P explored), which may be below -1 (KG section 3.2).

    V is the node's value, and P explored the sum of the priors of its visited moves.
    """
    return value - reduction * maths.sqrt(explored) if reduction else value


def deviation_factor(
    value: Any, squares: Any, visits: Any, scale: float, prior: float, weight: float, arrays: Any
) -> Any:
    """Return the factor by which variance scaling multiplies c: 1 + scale (s / prior - 1) (KGM,
    "Dynamic Variance-Scaled cPUCT"; KataGo's `getFpuValueForChildrenAssumeVisited`).

    s^2 = ((V^2 + prior^2) w + sum of squares) / (w + N - 1) - V^2; with one visit s is the prior.

    Args:
      value: V, the mean of the values backed up and of the node's own evaluation.
      squares: the sum of their squares, of the same shape.
      visits: N, their number, of the same shape.
      scale, prior, weight: `PuctConfig.variance_scale`, `stdev_prior` and `stdev_prior_weight`.
      arrays: `jax.numpy` or `numpy`.
    """
    mean_square = arrays.maximum(squares / visits, value * value)  # rounding may break it
    total = (value * value + prior * prior) * weight + mean_square * visits
    variance = total / arrays.maximum(weight + visits - 1.0, 1e-6) - value * value
    stdev = arrays.where(visits > 1.0, arrays.sqrt(arrays.maximum(variance, 0.0)), prior)
    return 1.0 + scale * (stdev / prior - 1.0)
