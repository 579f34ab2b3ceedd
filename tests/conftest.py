"""Settings of the test session: CPU only, eight virtual devices, a persistent compilation cache, strict promotion."""

import os
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
# The suite's time is compiling; without LLVM's optimisations that takes half as long, and with XLA's older emitters of fusions, which go without MLIR, a quarter less
# again (processor time of two iterations of chess: 34 and 27 s). Set XLA_FLAGS to something else to test the programs that users run.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

import jax
import pytest

import azero  # noqa: F401 - adds its own flag to XLA_FLAGS, before JAX reads them


@pytest.fixture(autouse=True, scope="module")
def release_programs():
    """Let go of a module's compiled programs: a process with too many of them runs out of memory maps."""
    yield
    jax.clear_caches()
