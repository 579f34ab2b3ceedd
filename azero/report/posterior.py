"""The plot of a tuning: what its Gaussian process predicts for each setting."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from azero.match.score import NORMAL_95
from azero.match.tuning.optimiser import Observation, Posterior
from azero.match.tuning.space import Parameter
from azero.report.plots import IMAGE_COLOURS, STYLE

_STEPS = 101
"""Points of a line."""


def save_posterior(
    path: Path,
    space: Sequence[Parameter],
    observations: Sequence[Observation],
    posterior: Posterior,
    winner: np.ndarray,
) -> None:
    """Draw, for each setting, the mean and the 95% band of the process along the line through the
    `winner` float[D], and all observations with their standard errors."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.0 * len(space), 3.0), layout="constrained")
        for index, parameter in enumerate(space):
            axes = figure.add_subplot(1, len(space), index + 1)
            _draw(axes, index, parameter, observations, posterior, winner)
        figure.savefig(path, dpi=120)


def _draw(
    axes: Axes,
    index: int,
    parameter: Parameter,
    observations: Sequence[Observation],
    posterior: Posterior,
    winner: np.ndarray,
) -> None:
    units = np.linspace(0.0, 1.0, _STEPS)
    line = np.tile(winner, (_STEPS, 1))
    line[:, index] = units
    mean, deviation = posterior.at(line)
    values = [parameter.value(float(unit)) for unit in units]
    axes.plot(values, mean, color=IMAGE_COLOURS[0])
    axes.fill_between(
        values,
        mean - NORMAL_95 * deviation,
        mean + NORMAL_95 * deviation,
        color=IMAGE_COLOURS[0],
        alpha=0.2,
        linewidth=0,
    )
    axes.errorbar(
        [parameter.value(float(one.point[index])) for one in observations],
        [one.elo for one in observations],
        [one.deviation for one in observations],
        fmt="o",
        markersize=3,
        linewidth=0.8,
        color=IMAGE_COLOURS[3],
    )
    axes.axvline(parameter.value(float(winner[index])), color=IMAGE_COLOURS[1], linewidth=1)
    axes.set_xscale("log" if parameter.is_log else "linear")
    axes.set_xlabel(parameter.name)
    axes.set_ylabel("Elo against the opponent")
