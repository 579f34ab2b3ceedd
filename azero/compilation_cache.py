"""Where compiled programs, and the compiler's reports on them, are kept between two starts."""

import os
import sys
from pathlib import Path

VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def compilation_cache() -> str:
    """Return the directory of compiled programs: the one that is set, or one in the user's cache
    directory."""
    directory = (
        sys.modules["jax"].config.values["jax_compilation_cache_dir"]
        if "jax" in sys.modules
        else os.environ.get(VARIABLE)
    )
    return directory or str(cache_directory() / "jax")


def cache_directory() -> Path:
    """Return azero's part of the user's cache directory (XDG: an empty variable counts as unset).

    Raises:
      ValueError: the user has no home directory.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "azero"
    except RuntimeError:
        raise ValueError(
            "there is no place for compiled programs: this user has no home directory; set HOME, "
            f"XDG_CACHE_HOME or {VARIABLE}"
        ) from None


def use_compilation_cache() -> None:
    """Keep compiled programs in `compilation_cache()`; call this before anything is compiled. It
    does not import JAX, for which an engine's first answers should not wait."""
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_compilation_cache_dir", compilation_cache())
    else:
        os.environ[VARIABLE] = compilation_cache()
