"""Published figures for comparison: those of AlphaGo (Silver et al. 2016, AG16), and Extended Data
Tables 1 and 2 of AlphaGo Zero (Silver et al. 2017, AGZ)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from rich.table import Table

from azero.console.tables import Cell, make_table
from azero.evaluate.accuracy import Accuracy, Mean

PUBLISHED: dict[str, tuple[float | None, ...]] = {
    "supervised, 20 blocks (AGZ)": (62.0, 60.4, 54.3, 0.177, 0.185, 0.207),
    "supervised, 12 layers (2016)": (59.1, 55.9, None, 0.19, 0.37, None),
    "self-play, 20 blocks (AGZ)": (None, None, 49.0, None, None, 0.177),
    "self-play, 40 blocks (AGZ)": (None, None, 51.3, None, None, 0.180),
}
"""AGZ Extended Data Tables 1 and 2: move prediction in per cent, and mean squared value error
scaled to [0, 1], each on train and test games of KGS and on professional ones of GoKifu; None where
the paper gives no figure. The scale of the 12-layer errors is not stated in the paper."""


def prediction_table(ours: Mapping[str, Accuracy]) -> Table:
    """Return the table `paper | ours`; our figures are those of the games that the networks were
    given, in the column of held-out games."""
    rows: list[tuple[Cell, ...]] = [
        (f"paper: {name}", *figures) for name, figures in PUBLISHED.items()
    ]
    for name, result in ours.items():
        moves, error = format_mean(result.top1, 100, 1), format_mean(result.value_error, 1, 3)
        rows.append((f"ours: {name}", None, moves, None, None, error, None))
    others = ("held out", "professionals")
    columns = ("network", "moves %, train", *others, "value error, train", *others)
    return make_table(
        "Prediction of moves and results (AGZ, Extended Data Tables 1 and 2)", columns, rows
    )


PAPER_2016 = {
    "rollout accuracy": "24.2% (methods, 'Rollout policy')",
    "policy accuracy": "55.4% (Extended Data Table 3: 192 filters, one symmetry)",
    "reinforce size": "10,000 mini-batches of 128 games",
    "rl-match": "above 80%",
    "second pass against the first": "slightly better",
    "value-data": "over 30 M positions of as many games",
    "value error": "0.234 held out",
    "one position, train": "0.226",
    "one position, test": "0.234",
    "all positions of records, train": "0.19 (games of KGS)",
    "all positions of records, test": "0.37 (games of KGS)",
    **{
        f"{planes} planes": f"{accuracy}%"
        for planes, accuracy in ((4, 47.6), (12, 54.7), (20, 54.7), (48, 55.4))
    },
    **{
        f"{filters} filters": f"{accuracy}%"
        for filters, accuracy in ((128, 54.6), (192, 55.4), (256, 55.9))
    },
    "lambda 0 against lambda 0.5": "at most 5%",
    "lambda 0.5 against lambda 1": "at least 95%",
    "rating of lambda 0": "-239",
    "rating of lambda 0.5": "+474",
    "rating of lambda 1": "0 (2416 less itself)",
}
"""AG16's figures, all of 19x19 (main text, methods, Extended Data Tables 3 and 7), by quantity. The
paper does not state the scale of the value errors; AGZ lists them with others that are scaled by
1/4, like ours."""


class Comparison(NamedTuple):
    """A line of a table `paper | ours`."""

    what: str
    paper: str
    ours: str


def claim(what: str, ours: str) -> Comparison:
    """Return our figure with AG16's, if there is one."""
    return Comparison(what, PAPER_2016.get(what, "-"), ours)


def format_mean(mean: Mean, scale: float, digits: int, unit: str = "") -> str:
    """Return a mean and its interval, both times `scale`: 33.1% (32.4 to 33.8); one game has no
    interval."""
    value, low, high = (scale * number for number in (mean.value, mean.low, mean.high))
    interval = f" ({low:.{digits}f} to {high:.{digits}f})" if math.isfinite(low) else ""
    return f"{value:.{digits}f}{unit}{interval}"
