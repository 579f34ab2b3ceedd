"""Where compiled programs are kept between two starts."""

from __future__ import annotations

import os
from pathlib import Path

import jax


def compilation_cache() -> str:
    """Return the directory of compiled programs: the one that is set, or one in the user's cache directory."""
    directory: str | None = jax.config.values["jax_compilation_cache_dir"]
    return directory or str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "azero" / "jax")


def use_compilation_cache() -> None:
    """Keep compiled programs there; to be called before anything is compiled."""
    jax.config.update("jax_compilation_cache_dir", compilation_cache())
