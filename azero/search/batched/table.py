"""The table of searches, by the name in `SearchConfig.name`."""

from __future__ import annotations

from collections.abc import Callable

from azero.config import SearchConfig
from azero.games.game import Game
from azero.search.batched.gumbel import make_gumbel
from azero.search.batched.puct import make_puct
from azero.search.search import LeafFn, SearchFn


def _make_mctx_puct(config: SearchConfig, game: Game, leaf: LeafFn) -> SearchFn:
    from azero.search.batched.mctx_backend import make_mctx_puct  # the library is loaded where it is asked for

    return make_mctx_puct(config, game, leaf)


def _make_mctx_gumbel(config: SearchConfig, game: Game, leaf: LeafFn) -> SearchFn:
    from azero.search.batched.mctx_backend import make_mctx_gumbel

    return make_mctx_gumbel(config, game, leaf)


SEARCHES: dict[str, Callable[[SearchConfig, Game, LeafFn], SearchFn]] = {
    "puct": make_puct,
    "gumbel": make_gumbel,
    "mctx_puct": _make_mctx_puct,
    "mctx_gumbel": _make_mctx_gumbel,
}

TEACH_VISITS = ("puct", "mctx_puct")
"""Searches whose policy target is the distribution of their visits."""


def make_search(config: SearchConfig, game: Game, leaf: LeafFn) -> SearchFn:
    """Make the search that `config.name` names.

    The number of simulations is part of the compiled program; for fewer (playout caps, evaluation) make another one from `dataclasses.replace(config, ...)`.

    Raises:
      ValueError: the name is not in the table.
    """
    if config.name not in SEARCHES:
        raise ValueError(f"unknown search {config.name!r}; the searches are: {', '.join(sorted(SEARCHES))}")
    return SEARCHES[config.name](config, game, leaf)
