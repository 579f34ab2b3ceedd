"""Compiling a program for a slice of TPUs that is not there, and what comes out; results are kept between runs."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import importlib.metadata
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from azero.chips import GIB
from azero.plan.hlo import Module, parse


@dataclass(frozen=True)
class Memory:
    """Bytes of one device's main memory that a program takes while it runs (`memory_analysis()`)."""

    arguments: int
    outputs: int
    temporaries: int
    aliases: int
    """Bytes of outputs that lie where arguments were."""
    code: int

    @property
    def total(self) -> int:
        """All of it at once."""
        return self.arguments + self.outputs - self.aliases + self.temporaries + self.code


@dataclass(frozen=True)
class CompiledProgram:
    """What the compiler made of one program."""

    module: Module
    memory: Memory
    seconds: float
    """Time that compiling took, also where the result was kept from before."""


class DoesNotFit(ValueError):
    """The compiler gave up: the program needs more memory than a device has."""

    def __init__(self, what: str, needed: int) -> None:
        """Say `what` needs too much, and remember the bytes that would have been `needed`."""
        super().__init__(f"{what} needs {needed / GIB:.2f} GiB a device or more")
        self.needed = needed


def compile_program(lowered: Any, topology: str) -> CompiledProgram:
    """Compile what `jax.jit(...).lower(...)` gave for the devices of `topology`, or take the result of an earlier time.

    The compiler's input is the key under which a result is kept, with the compiler's version and the topology, so that no other program can be taken for it.

    Raises:
      DoesNotFit: it needs more memory than a device has.
    """
    path = _cache_path(lowered.as_text(), topology)
    if not path.exists():
        _write(path, _compile(lowered))
    kept = json.loads(gzip.decompress(path.read_bytes()))
    if "needed" in kept:
        raise DoesNotFit("the program", kept["needed"])
    return CompiledProgram(parse(kept["text"]), Memory(**kept["memory"]), kept["seconds"])


def _compile(lowered: Any) -> dict[str, Any]:
    started = time.monotonic()
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        needed = bytes_needed(str(error))
        if needed is None:
            raise
        return {"needed": needed}
    analysis = compiled.memory_analysis()
    memory = Memory(
        arguments=analysis.argument_size_in_bytes,
        outputs=analysis.output_size_in_bytes,
        temporaries=analysis.temp_size_in_bytes,
        aliases=analysis.alias_size_in_bytes,
        code=analysis.generated_code_size_in_bytes,
    )
    return {"text": compiled.as_text(), "memory": dataclasses.asdict(memory), "seconds": time.monotonic() - started}


def bytes_needed(message: str) -> int | None:
    """Return the bytes that a program would have needed, by the compiler's `message` that they are not there; None for another message."""
    used = re.search(r"Used ([\d.]+)([KMGT]?) of [\d.]+[KMGT]? hbm", message) or re.search(r"required for HLO temporaries \(([\d.]+)([KMGT]?)\)", message)
    return parse_size(used[1], used[2]) if used else None


def parse_size(number: str, unit: str) -> int:
    """Return the bytes of a size as the compiler writes it, 17.66 and G."""
    return round(float(number) * 1024 ** " KMGT".index(unit or " "))


def _cache_path(program: str, topology: str) -> Path:
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "libtpu")]
    digest = hashlib.sha256("\n".join([*versions, topology, program]).encode()).hexdigest()
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return home / "azero" / "plan" / f"{digest[:32]}.json.gz"


def _write(path: Path, result: dict[str, Any]) -> None:
    """Write in one step: another process may look for the same result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(gzip.compress(json.dumps(result).encode()))
    unfinished.replace(path)
