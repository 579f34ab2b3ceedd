"""Peak rates of TPUs and GPUs, and TPU slices that programs can be compiled for without a TPU."""

import importlib.util
import math
import os
import re
from dataclasses import dataclass
from typing import Any

import jax
from jax.experimental import topologies

GIB = float(1 << 30)


@dataclass(frozen=True)
class Chip:
    """One generation of TPU: figures of a whole chip."""

    hbm: float
    """Bytes of high-bandwidth memory."""
    flops: float
    """Peak bf16 operations per second."""
    bandwidth: float
    """Bytes per second between the memory and the chip."""
    links: float
    """Bytes per second to other chips, over all links, in one direction."""
    axes: int
    """Dimensions of the torus in which the chips of a slice lie."""
    devices: int
    """JAX devices of a chip: in v4 and v5p its two cores are one device."""
    clock: float
    """Cycles per second; the compiler estimates times in cycles."""

    @property
    def device_hbm(self) -> float:
        """Bytes of memory of one device."""
        return self.hbm / self.devices

    @property
    def device_flops(self) -> float:
        """Peak bf16 operations per second of one device."""
        return self.flops / self.devices


# Sources: the pages "TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x" of the Cloud TPU
# documentation ("Key specifications"; capacities are powers of two, as the compiler's own limits
# show); links of v2 and v3, and all of v2: Norrie et al. 2021 (IEEE Micro 41), Table 1: four links
# of 496 and 656 Gbit/s; links of v4: Jouppi et al. 2023 (ISCA), six of 50 GB/s; the others: half of
# the documentation's 400, 1,200, 800 and 1,200 GB/s in both directions. Clock rates of v2 and v3:
# Norrie et al., Table 1; of v4: Jouppi et al., Table 4. The others are not published there: the
# peak over the operations of a cycle, two for each cell of four matrix units a core, 128x128 (v5e
# one core, v5p two) or 256x256 (v6e one, tpu7x two; with two units in v6e, as the documentation has
# it, the compiler would estimate large products at more than the peak).
CHIPS = {
    "v2": Chip(
        hbm=16 * GIB, flops=46e12, bandwidth=700e9, links=248e9, axes=2, devices=2, clock=700e6
    ),
    "v3": Chip(
        hbm=32 * GIB, flops=123e12, bandwidth=900e9, links=328e9, axes=2, devices=2, clock=940e6
    ),
    "v4": Chip(
        hbm=32 * GIB, flops=275e12, bandwidth=1200e9, links=300e9, axes=3, devices=1, clock=1050e6
    ),
    "v5e": Chip(
        hbm=16 * GIB, flops=197e12, bandwidth=819e9, links=200e9, axes=2, devices=1, clock=1.5e9
    ),
    "v5p": Chip(
        hbm=95 * GIB, flops=459e12, bandwidth=2765e9, links=600e9, axes=3, devices=1, clock=1.75e9
    ),
    "v6e": Chip(
        hbm=32 * GIB, flops=918e12, bandwidth=1638e9, links=400e9, axes=2, devices=1, clock=1.75e9
    ),
    "tpu7x": Chip(
        hbm=192 * GIB, flops=2307e12, bandwidth=7380e9, links=600e9, axes=3, devices=2, clock=2.2e9
    ),
}
"""Generations by the name before the colon of a topology."""
_TPU_KINDS = {"TPU v5 lite": "v5e", "TPU v5": "v5p", "TPU v6 lite": "v6e", "TPU7x": "tpu7x"}
"""JAX's device kinds that are not "TPU " and the generation, by kind."""
_GPU_FLOPS = {
    "T4": (65e12, 8.1e12),  # no bf16: fp16; no TF32 before Ampere: plain float32
    "V100": (125e12, 15.7e12),  # the same; SXM2
    "L4": (121e12, 60e12),
    "A100": (312e12, 156e12),
    "H100": (989e12, 494e12),  # SXM
    "H200": (989e12, 494e12),  # SXM
    "B200": (2250e12, 1100e12),  # HGX
}
"""Peak FLOP/s on bf16 and on float32 operands, which is TF32, XLA's default, where there is any;
without sparsity (NVIDIA's data sheets)."""

_HOST_BOUNDS = (2, 2, 1)
"""Chips of one host along each axis; a smaller slice has one host."""
_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Variables that libtpu reads; with these values it compiles without a TPU, and several processes
may compile at once."""


@dataclass(frozen=True)
class Topology:
    """A slice: chips of one generation in a grid."""

    name: str
    """As in v5e:2x4."""
    chip: Chip
    num_chips: int

    @property
    def num_devices(self) -> int:
        """JAX devices of the slice."""
        return self.num_chips * self.chip.devices


def peak_flops(kind: str, dtype: str = "bfloat16") -> float | None:
    """Return the peak FLOP/s of a device of JAX's `kind` on operands of `dtype`.

    TPUs compute float32 products in one bf16 pass by default. None for an unknown device.
    """
    generations = {f"TPU {name}": name for name in CHIPS} | _TPU_KINDS
    peaks = {kind: CHIPS[name].device_flops for kind, name in generations.items()}
    peaks |= {name: pair[dtype == "float32"] for name, pair in _GPU_FLOPS.items()}
    # The longest name that the kind contains: not TPU v5 for TPU v5 lite.
    names = [name for name in peaks if re.search(rf"\b{name}\b", kind, re.IGNORECASE)]
    return peaks[max(names, key=len)] if names else None


def parse_topology(name: str) -> Topology:
    """Return the slice with the name `name`, such as v5e:2x4 or v4:2x2x1.

    Raises:
      ValueError: there is no such generation, or the grid has another number of axes.
    """
    generation, _, grid = name.partition(":")
    if generation not in CHIPS:
        known = f"known are: {', '.join(CHIPS)} (as in v5e:2x4)"
        raise ValueError(f"unknown TPU generation {generation!r} in the topology {name!r}; {known}")
    chip = CHIPS[generation]
    if not re.fullmatch("x".join([r"[1-9]\d*"] * chip.axes), grid):
        axes = f"{chip.axes} axes, as in {generation}:{'x'.join('221'[: chip.axes])}"
        raise ValueError(f"{name!r} is not a topology: {generation} has {axes}")
    return Topology(name, chip, math.prod(map(int, grid.split("x"))))


def topology_devices(topology: Topology) -> list[Any]:
    """Return the devices of the slice, for a mesh that programs can be compiled for but not run on.

    Raises:
      ValueError: the TPU compiler is not installed, or it rejects the topology.
    """
    if importlib.util.find_spec("libtpu") is None:
        raise ValueError('the TPU compiler is not installed: pip install libtpu (or "azero[plan]")')
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    jax.config.update("jax_platforms", "cpu")  # a TPU of this machine is left to other programs
    generation, _, grid = topology.name.partition(":")
    sides = [*map(int, grid.split("x")), 1][:3]
    bounds = tuple(min(side, bound) for side, bound in zip(sides, _HOST_BOUNDS, strict=True))
    options = {"chip_config_name": "megacore"} if generation == "v4" else {}
    try:
        devices = topologies.get_topology_desc(
            platform="tpu", topology_name=topology.name, chips_per_host_bounds=bounds, **options
        ).devices
    except Exception as error:
        reason = str(error).splitlines()[0]
        message = f"the TPU compiler rejects the topology {topology.name!r}: {reason}"
        raise ValueError(message) from error
    return list(devices)
