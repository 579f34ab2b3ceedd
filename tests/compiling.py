"""How the tests compile: most programs run once or twice and are not optimised (conftest.py); some
run so often that optimising them pays."""

from __future__ import annotations

import os

OPTIMISED: dict[str, str | bool | int | float] = (
    {"xla_backend_optimization_level": 1, "xla_llvm_disable_expensive_passes": False}
    if "optimization_level=0" in os.environ["XLA_FLAGS"]
    else {}
)
"""`jax.jit(..., compiler_options=OPTIMISED)`: about 5 times as fast and 4 s more to compile (step
and mask of chess: 121 and 21 us a position)."""
if "xla_cpu_opt_preset" in os.environ["XLA_FLAGS"]:
    OPTIMISED["xla_cpu_opt_preset"] = "CPU_OPT_PRESET_DEFAULT"
