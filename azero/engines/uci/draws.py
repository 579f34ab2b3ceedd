"""Whether a network says how often games are drawn: from its settings, so that `uci` is answered
before JAX and the network are there."""

from __future__ import annotations

import contextlib
from pathlib import Path

from azero.data.run_files import read_config
from azero.experiment import load


def has_draws(checkpoint: Path | None, random_net: str | None) -> bool:
    """Return whether a network has outputs for loss, draw and win.

    Args:
      checkpoint: directory of a run or of an exported network, or None.
      random_net: or an experiment with options behind a question mark, "chess?blocks=2".

    Returns:
      False also where there is no such network: loading it says what is wrong.
    """
    with contextlib.suppress(ValueError, OSError):
        if checkpoint is not None:
            return read_config(checkpoint).network.HAS_DRAWS
        if random_net is not None:
            return load(random_net.partition("?")[0]).config.network.HAS_DRAWS
    return False
