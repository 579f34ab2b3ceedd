"""Compiler estimates of programs: memory, arithmetic, traffic, time at the roofline.

Programs are compiled for a TPU slice that need not exist, and results are cached between runs.
"""

import dataclasses
import gzip
import hashlib
import importlib.metadata
import json
import math
import os
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from azero.chips import GIB, Topology
from azero.compilation_cache import cache_directory
from azero.plan.cost import Cost, Rates, module_cost
from azero.plan.hlo import COLLECTIVES, Module, parse
from azero.plan.programs import PlannedProgram, PlannedPrograms

COUNTED = ("gather", "scatter", "while", *COLLECTIVES)
"""Instructions that are counted in the report: those slow on TPUs, loops, and collectives."""
USABLE = 31 / 32
"""Share of a device's memory that programs may take: the compiler keeps 0.25 of 16 GiB for itself
on v5e, 0.75 of 32 GiB on v6e (its own messages)."""

Announce = Callable[[str], AbstractContextManager[None]]
"""Shows an activity while the block runs."""


@dataclass(frozen=True)
class Memory:
    """Bytes of one device's main memory that a program takes while it runs."""

    arguments: int
    outputs: int
    temporaries: int
    aliases: int
    """Bytes of outputs that reuse the memory of arguments."""
    code: int

    @property
    def total(self) -> int:
        """All of it at once."""
        return self.arguments + self.outputs - self.aliases + self.temporaries + self.code


@dataclass(frozen=True)
class CompiledProgram:
    """The compiler's result for one program."""

    module: Module
    memory: Memory
    seconds: float
    """Compile time, also if the result is from the cache."""


@dataclass(frozen=True)
class ProgramCost:
    """The memory and work of one program on one device."""

    compiled: CompiledProgram
    work: Cost
    resident_bytes: int
    """Bytes of everything else on the device while it runs."""

    @property
    def hbm_bytes(self) -> int:
        """Memory needed while it runs."""
        return self.compiled.memory.total + self.resident_bytes

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of `COUNTED` in the program by name.

        Collectives are left out where there are none.
        """
        counts = self.compiled.module.counts()
        return {name: counts[name] for name in COUNTED if counts[name] or name not in COLLECTIVES}


class DoesNotFit(ValueError):
    """The compiler gave up: the program needs more memory than a device has."""

    def __init__(self, what: str, needed: int) -> None:
        """Name the program `what` in the message, and keep the bytes that it `needed`."""
        super().__init__(f"{what} needs {needed / GIB:.2f} GiB a device or more")
        self.needed = needed


def program_costs(
    programs: PlannedPrograms, topology: Topology, announce: Announce
) -> dict[str, ProgramCost]:
    """Compile all programs, one after the other, and return their costs by name.

    Raises:
      DoesNotFit: a program needs more memory than a device has.
    """
    costs = {}
    for program in programs.in_order():
        with announce(f"compiling {program.name} for {topology.name}"):
            costs[program.name] = program_cost(program, topology)
    return costs


def program_cost(program: PlannedProgram, topology: Topology) -> ProgramCost:
    """Compile `program` and add up what it does.

    Raises:
      DoesNotFit: it needs more memory than a device has, together with the resident arrays.
    """
    resident = sum(shard_bytes(leaf) for leaf in jax.tree.leaves(program.resident))
    try:
        compiled = compile_program(program.lower(), topology.name)
    except DoesNotFit as error:
        raise DoesNotFit(program.name, error.needed + resident) from error
    return ProgramCost(compiled, module_cost(compiled.module, device_rates(topology)), resident)


def usable_bytes(topology: Topology) -> float:
    """Return the memory of a device that programs may take."""
    return USABLE * topology.chip.device_hbm


def device_rates(topology: Topology) -> Rates:
    """Return the peak rates of one device of the slice."""
    chip, devices = topology.chip, topology.chip.devices
    bandwidth, links = chip.bandwidth / devices, chip.links / devices
    return Rates(chip.device_flops, bandwidth, links, topology.num_devices)


def shard_bytes(leaf: Any) -> int:
    """Return the bytes of one device's part of an array, by its shape and sharding."""
    dtype = leaf.dtype
    itemsize = 8 if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key) else dtype.itemsize
    return math.prod(leaf.sharding.shard_shape(leaf.shape)) * itemsize


def compile_program(lowered: Any, topology: str) -> CompiledProgram:
    """Compile what `jax.jit(...).lower(...)` gave for `topology`, or take an earlier result.

    A result is cached under a digest of the compiler's input, with the source lines that a profile
    names, the compiler's version and the topology.

    Raises:
      DoesNotFit: it needs more memory than a device has.
    """
    path = _cache_path(lowered.as_text(debug_info=True), topology)
    if not path.exists():
        _write(path, _compile(lowered))
    kept = json.loads(gzip.decompress(path.read_bytes()))
    if "needed" in kept:
        raise DoesNotFit("the program", kept["needed"])
    return CompiledProgram(parse(kept["text"]), Memory(**kept["memory"]), kept["seconds"])


def program_memory(compiled: jax.stages.Compiled) -> Memory | None:
    """Return the memory that a compiled program takes; None where the compiler does not say."""
    analysis = compiled.memory_analysis()
    if analysis is None:
        return None
    return Memory(
        arguments=analysis.argument_size_in_bytes,
        outputs=analysis.output_size_in_bytes,
        temporaries=analysis.temp_size_in_bytes,
        aliases=analysis.alias_size_in_bytes,
        code=analysis.generated_code_size_in_bytes,
    )


def _compile(lowered: Any) -> dict[str, Any]:
    started = time.monotonic()
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        needed = bytes_needed(str(error))
        if needed is None:
            raise
        return {"needed": needed}
    memory = program_memory(compiled)
    assert memory is not None, "the TPU compiler reports memory"
    seconds = time.monotonic() - started
    return {"text": compiled.as_text(), "memory": dataclasses.asdict(memory), "seconds": seconds}


def bytes_needed(message: str) -> int | None:
    """Return the bytes that a program would have needed, from the compiler's `message`; None if it
    is another error."""
    used = re.search(r"Used ([\d.]+)([KMGT]?) of [\d.]+[KMGT]? hbm", message)
    used = used or re.search(r"required for HLO temporaries \(([\d.]+)([KMGT]?)\)", message)
    return parse_size(used[1], used[2]) if used else None


def parse_size(number: str, unit: str) -> int:
    """Return the bytes of a size as the compiler writes it, 17.66 and G."""
    return round(float(number) * 1024 ** " KMGT".index(unit or " "))


def _cache_path(program: str, topology: str) -> Path:
    packages = ("jax", "jaxlib", "libtpu")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    digest = hashlib.sha256("\n".join([*versions, topology, program]).encode()).hexdigest()
    return cache_directory() / "plan" / f"{digest[:32]}.json.gz"


def _write(path: Path, result: dict[str, Any]) -> None:
    """Write atomically: another process may read the same result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(gzip.compress(json.dumps(result).encode()))
    unfinished.replace(path)
