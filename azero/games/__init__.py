"""Rules of games: no network, no search."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import `make` on demand: the settings in this package are read without JAX."""
    if name != "make":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from azero.games.table import make

    return make
