"""Whether a network predicts draws, read from its settings, so that `uci` is answered before JAX
and the network are loaded."""

from __future__ import annotations

import contextlib

from azero.models.naming import read_named_config


def has_draws(player: str) -> bool:
    """Return whether the network that a player's name means has outputs for loss, draw and win.

    False also where there is no such network: loading it says what is wrong.
    """
    with contextlib.suppress(ValueError, OSError):
        return read_named_config(player).network.HAS_DRAWS
    return False
