"""What an experiment is: a name, a claim, and complete settings with their sources."""

import importlib
from dataclasses import dataclass
from typing import Literal

from azero.settings import Config

NAMES = (
    *("tictactoe", "go5", "go5_gated", "go7", "go9", "go9_gumbel", "go9_master"),
    *("go5_efficient", "go7_efficient", "go9_efficient", "go19", "go19_40b", "go19_alphazero"),
    *("minichess", "minichess_efficient", "animal_shogi", "animal_shogi_efficient"),
    *("chess", "chess_efficient", "chess_endings", "shogi", "shogi_efficient", "connect_four"),
    *("sl19", "sl9", "sl_chess", "sl_shogi"),
)
"""The experiments: each is a module of `azero.experiments` with an `EXPERIMENT`."""
MULTI_STAGE = ("alphago9", "alphago19")
"""The experiments of several stages (`azero.train.alphago2016.run`): modules of `azero.experiments`
whose `EXPERIMENT` is an `AlphaGoExperiment`."""


@dataclass(frozen=True)
class Experiment:
    """One run that can be started with `python -m azero.experiments.NAME`."""

    name: str
    title: str
    """One line: what is learned, and what it shows."""
    config: Config
    learns_from: Literal["selfplay", "records"] = "selfplay"
    """Where positions come from: games of its own, or a data set of `azero data import`
    (--data)."""


def load(name: str) -> Experiment:
    """Return the experiment `name`; dashes count as underscores.

    Raises:
      ValueError: no experiment has that name, or it is one of `MULTI_STAGE`.
    """
    if name in MULTI_STAGE:
        raise ValueError(
            f"{name} has several stages, so only azero train takes it; "
            f"the other experiments are: {', '.join(NAMES)}"
        )
    known = name.replace("-", "_")
    if known not in NAMES:
        raise ValueError(
            f"unknown experiment {name!r}; the experiments are: {', '.join((*NAMES, *MULTI_STAGE))}"
        )
    return importlib.import_module(f"azero.experiments.{known}").EXPERIMENT
