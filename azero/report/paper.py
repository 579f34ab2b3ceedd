"""Published figures beside ours: Extended Data Tables 1 and 2 of AlphaGo Zero (Silver et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table

from azero.evaluate.accuracy import Accuracy, Mean
from azero.report.tables import Cell, make_table


@dataclass(frozen=True)
class Published:
    """One row of the two tables: move prediction in per cent, and mean squared value error scaled to [0, 1]; None where the paper gives no figure."""

    name: str
    train: float | None
    test: float | None
    professional: float | None
    train_error: float | None
    test_error: float | None
    professional_error: float | None


PUBLISHED = (
    Published("supervised, 20 blocks (AGZ)", 62.0, 60.4, 54.3, 0.177, 0.185, 0.207),
    Published("supervised, 12 layers (2016)", 59.1, 55.9, None, 0.19, 0.37, None),
    Published("self-play, 20 blocks (AGZ)", None, None, 49.0, None, None, 0.177),
    Published("self-play, 40 blocks (AGZ)", None, None, 51.3, None, None, 0.180),
)
"""AGZ Extended Data Tables 1 and 2; train and test are of KGS, the third column of GoKifu. The scale of the 12-layer errors is not stated in the paper."""


def prediction_table(ours: Mapping[str, Accuracy]) -> Table:
    """Return the table `paper | ours`; our figures are those of the games that the networks were given, in the column of held-out games."""
    rows: list[tuple[Cell, ...]] = [
        (f"paper: {row.name}", row.train, row.test, row.professional, row.train_error, row.test_error, row.professional_error) for row in PUBLISHED
    ]
    for name, result in ours.items():
        rows.append((f"ours: {name}", None, format_mean(result.top1, 100, 1), None, None, format_mean(result.value_error, 1, 3), None))
    columns = ("network", "moves %, train", "held out", "professionals", "value error, train", "held out", "professionals")
    return make_table("Prediction of moves and results (AGZ, Extended Data Tables 1 and 2)", columns, rows)


def format_mean(mean: Mean, scale: float, digits: int) -> str:
    """Return a mean and its interval, both times `scale`: 33.1 (32.4 to 33.8)."""
    value, low, high = (scale * number for number in (mean.value, mean.low, mean.high))
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
