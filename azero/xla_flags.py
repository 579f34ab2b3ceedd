"""The XLA flag that must be set before JAX starts: what YNNPACK may compute on CPUs. Some of
its fusions compute wrong numbers (docs/upstream-ynnpack.md); its single matrix products are right,
and the only ones of XLA that use a CPU's matrix units (AMX)."""

import importlib.util
import mmap
import os
import sys
import warnings
from pathlib import Path

NAME = "xla_cpu_experimental_ynn_fusion_type"
FLAG = f"--{NAME}="
"""Empty: nothing is computed by YNNPACK."""
SINGLE_PRODUCTS = "individual_dot"
"""The value with which YNNPACK computes matrix products and fuses nothing with them."""


def limit_ynnpack() -> str:
    """Add `FLAG` to XLA_FLAGS if this jaxlib knows it and it is not set yet, with
    `SINGLE_PRODUCTS` if the CPU has matrix units. Return what was done, in words.

    Warns if JAX has started already, because it reads XLA_FLAGS only once, when it makes its
    first backend.
    """
    flags = _flags()
    if NAME in flags:
        return f"as XLA_FLAGS says: {next(flag for flag in flags.split() if NAME in flag)}"
    if not jaxlib_contains(f"\0{NAME}\0"):
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
    has_matrix_units = "amx_bf16" in cpu_flags() and jaxlib_contains(
        f"LIBRARY_FUSION_TYPE_{SINGLE_PRODUCTS.upper()}"
    )
    flag = FLAG + SINGLE_PRODUCTS if has_matrix_units else FLAG
    os.environ["XLA_FLAGS"] = f"{flags} {flag}".lstrip()
    return f"off{' but for single products' if has_matrix_units else ''}: azero set {flag}"


def cpu_flags() -> frozenset[str]:
    """Return the words of /proc/cpuinfo, among them this CPU's instruction sets; none if there is
    no such file."""
    path = Path("/proc/cpuinfo")
    return frozenset(path.read_text(encoding="utf-8").split() if path.exists() else ())


def _flags() -> str:
    """Return the flags in XLA_FLAGS, which may also name a file that holds them."""
    given = os.environ.get("XLA_FLAGS", "").strip()
    if not given or given.startswith("-"):
        return given
    path = Path(given)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def jaxlib_contains(text: str) -> bool:
    """Return whether jaxlib's library contains the name of a flag or of its value; XLA aborts at a
    flag that it does not know. jaxlib is not imported."""
    spec = importlib.util.find_spec("jaxlib")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in Path(folder).glob("*jax_common*"):
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                return content.find(text.encode()) >= 0
    return False


def _jax_has_started() -> bool:
    """Return whether JAX has made a backend in this process."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bridge.backends_are_initialized()
