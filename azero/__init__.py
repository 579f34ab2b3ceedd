"""AlphaGo, AlphaGo Zero and AlphaZero in JAX.

What is listed here is the Python interface (docs/python.md); all modules below are internal. The
names are imported when they are first used, so that `import azero` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from azero.xla_flags import limit_ynnpack

if TYPE_CHECKING:
    from azero.api.model import Evaluation, Model, SearchedMove, SearchResult, load
    from azero.api.playing import FinishedGame, play
    from azero.api.training import run_experiment
    from azero.games.game import Game
    from azero.games.table import make
    from azero.models.registry import list_names as list_models
    from azero.players.position import Position

__version__ = "0.2.0"

YNN_FUSIONS = limit_ynnpack()
"""What was done about XLA's wrong fusions on CPUs, in words, for `azero doctor`."""

__all__ = [
    "Evaluation",
    "FinishedGame",
    "Game",
    "Model",
    "Position",
    "SearchResult",
    "SearchedMove",
    "list_models",
    "load",
    "make",
    "play",
    "run_experiment",
]

_PLACES = {
    "Evaluation": "azero.api.model:Evaluation",
    "FinishedGame": "azero.api.playing:FinishedGame",
    "Game": "azero.games.game:Game",
    "Model": "azero.api.model:Model",
    "Position": "azero.players.position:Position",
    "SearchResult": "azero.api.model:SearchResult",
    "SearchedMove": "azero.api.model:SearchedMove",
    "list_models": "azero.models.registry:list_names",
    "load": "azero.api.model:load",
    "make": "azero.games.table:make",
    "play": "azero.api.playing:play",
    "run_experiment": "azero.api.training:run_experiment",
}
"""Where the public names are (PEP 562)."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'azero' has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
