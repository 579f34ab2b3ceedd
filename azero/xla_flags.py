"""The setting of XLA that must stand before JAX starts: on CPUs no fusions by YNNPACK, some of
which compute wrong numbers (docs/upstream-ynnpack.md)."""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
import warnings
from pathlib import Path

NAME = "xla_cpu_experimental_ynn_fusion_type"
FLAG = f"--{NAME}="
"""Empty: nothing is fused by YNNPACK."""


def turn_off_ynn_fusions() -> str:
    """Add `FLAG` to XLA_FLAGS, where this jaxlib knows it and it is not set yet; return what was
    done, in words.

    Warns where JAX has started already, because it reads XLA_FLAGS only once, when it makes its
    first backend.
    """
    flags = _flags()
    if NAME in flags:
        return f"as XLA_FLAGS says: {next(flag for flag in flags.split() if NAME in flag)}"
    if not _jaxlib_has_flag():
        return "this jaxlib has no such setting"
    if _jax_has_started():
        warnings.warn(
            f"JAX had started before azero was imported, so its programs for CPUs may "
            f"compute wrong numbers: import azero first, or set XLA_FLAGS={FLAG}",
            RuntimeWarning,
            stacklevel=3,  # the line that imports azero, where Python shows it
        )
        return (
            f"on, and numbers may be wrong: JAX had started before azero was imported. Import "
            f"azero first, or set XLA_FLAGS={FLAG}"
        )
    os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".lstrip()
    return f"off: azero set {FLAG}"


def _flags() -> str:
    """Return the flags in XLA_FLAGS, which may also name a file that holds them."""
    given = os.environ.get("XLA_FLAGS", "").strip()
    if not given or given.startswith("-"):
        return given
    path = Path(given)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _jaxlib_has_flag() -> bool:
    """Return whether the flag's name stands in jaxlib's library: XLA ends the process at a flag
    that it does not know. jaxlib is not imported."""
    spec = importlib.util.find_spec("jaxlib")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in Path(folder).glob("*jax_common*"):
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                return content.find(b"\0" + NAME.encode() + b"\0") >= 0
    return False


def _jax_has_started() -> bool:
    """Return whether JAX has made a backend in this process."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bridge.backends_are_initialized()
