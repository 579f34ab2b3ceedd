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
"""The experiments: each is a module of this package with a value `EXPERIMENT`."""


OF_STAGES = ("alphago9", "alphago19")
"""The experiments of several networks (`azero.train.alphago2016.run`): modules of this package with
a value `EXPERIMENT` of another kind."""


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
    """Return the experiment `name`, in which - is as _.

    Raises:
      ValueError: there is none of that name, or it is one of `OF_STAGES`.
    """
    if name in OF_STAGES:
        raise ValueError(
            f"{name} makes several networks one after another, so it is not known here, "
            f"only to azero train; known are: {', '.join(NAMES)}"
        )
    known = name.replace("-", "_")
    if known not in NAMES:
        raise ValueError(
            f"unknown experiment {name!r}; the experiments are: {', '.join((*NAMES, *OF_STAGES))}"
        )
    return importlib.import_module(f"azero.experiments.{known}").EXPERIMENT
