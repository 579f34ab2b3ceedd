"""Optimised programs as XLA prints them (HLO text): computations, instructions, shapes with their
memory, source lines."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.+)$")
_OPCODE = re.compile(r"\s*([\w\-]+)\(")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<=]*)\](?:\{([^}]*)\})?")
_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|branch_computations|true_computation|false_computation)="
    r"\{?(%[\w.\-]+(?:, %[\w.\-]+)*)\}?"
)
_TABLE_LINE = re.compile(r'^(\d+) (?:"(.*)"|\{(.*)\})$')
_TRIPS = re.compile(r'known_trip_count"?:\{"?n"?:"?(\d+)')
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "collective-permute",
    "all-to-all",
    "collective-broadcast",
)
"""Collectives; the names of asynchronous ones end in -start."""


class Array(NamedTuple):
    """One array of a shape."""

    dtype: str
    dims: tuple[int, ...]
    layout: str
    """As printed between braces: the dimensions from minor to major, and after a colon tiles and
    memory space."""

    @property
    def size(self) -> int:
        """Number of elements, without padding."""
        return math.prod(self.dims)

    @property
    def num_bytes(self) -> float:
        """Bytes of the elements alone."""
        return self.size * dtype_bytes(self.dtype)

    @property
    def hbm_bytes(self) -> float:
        """Bytes in the device's main memory, padded to whole tiles; none for what lies in a memory
        on the chip."""
        if re.search(r"S\([1-9]\d*\)", self.layout):
            return 0.0
        return math.prod(self._padded()) * dtype_bytes(self.dtype)

    def _padded(self) -> list[int]:
        order, _, rest = self.layout.partition(":")
        tile = re.search(r"T\(([\d,]+)\)", rest)
        dims = list(self.dims)
        if tile is None or not order:
            return dims
        fastest = [int(axis) for axis in order.split(",")]
        sides = [int(side) for side in reversed(tile[1].split(","))]
        for axis, side in zip(fastest, sides, strict=False):
            dims[axis] = -(-dims[axis] // side) * side
        return dims


def dtype_bytes(dtype: str) -> float:
    """Return the bytes of one element: bf16 is 2, pred is 1, s4 a half; none for tokens and the
    like."""
    bits = re.search(r"\d+", dtype)
    if bits is None:
        return 1.0 if dtype == "pred" else 0.0
    return int(bits[0]) / 8 * (2 if dtype.startswith("c") else 1)


@dataclass(frozen=True)
class Instruction:
    """One line of a computation."""

    name: str
    opcode: str
    arrays: tuple[Array, ...]
    """The result: one array, or the parts of a tuple."""
    operands: tuple[str, ...]
    """Names of instructions of the same computation."""
    attributes: str
    """The attributes after the operands."""
    number: int = 0
    """Index of a parameter, or value of an integer constant."""

    @property
    def hbm_bytes(self) -> float:
        """Bytes of the result in main memory."""
        return sum(array.hbm_bytes for array in self.arrays)

    def called(self, *kinds: str) -> list[str]:
        """Return the names of the computations that it runs under one of the attributes `kinds`."""
        found = [names for kind, names in _CALLED.findall(self.attributes) if kind in kinds]
        return [name.strip().removeprefix("%") for names in found for name in names.split(",")]

    @property
    def cycles(self) -> int | None:
        """The compiler's estimate of one run; None where it makes none (most scatters)."""
        cycles = re.search(r'"estimated_cycles":"(\d+)"', self.attributes)
        return None if cycles is None else int(cycles[1])

    @property
    def scopes(self) -> str:
        """The named scopes and the JAX primitive that it comes from, separated by slashes."""
        name = re.search(r'op_name="([^"]*)"', self.attributes)
        return name[1] if name else ""

    @property
    def frame(self) -> int | None:
        """Number of the stack frame that it comes from."""
        frame = re.search(r"\bstack_frame_id=(\d+)", self.attributes)
        return None if frame is None else int(frame[1])

    def index(self) -> int | None:
        """Return which part of a tuple it takes; None for an instruction that does something
        else."""
        index = re.search(r"\bindex=(\d+)", self.attributes)
        return int(index[1]) if index and self.opcode == "get-tuple-element" else None

    def trip_count(self) -> int | None:
        """Return how often the body of this loop runs, if that is printed with it."""
        trips = _TRIPS.search(self.attributes)
        return None if trips is None else int(trips[1])


Computation = dict[str, Instruction]
"""Instructions by name, in the order of the text; the last one is the result."""


class SourceLine(NamedTuple):
    """A line of Python."""

    file: str
    line: int


class Frame(NamedTuple):
    """A stack frame at the time when an instruction was traced."""

    source: SourceLine
    caller: int
    """Number of the calling frame; 0 where there is none."""


class Module(NamedTuple):
    """A compiled program."""

    computations: dict[str, Computation]
    entry: str
    frames: dict[int, Frame]
    """Stack frames by number."""

    def stack(self, frame: int | None) -> list[SourceLine]:
        """Return the source lines of a stack frame and its callers, the innermost first."""
        lines = []
        while frame in self.frames:
            lines.append(self.frames[frame].source)
            frame = self.frames[frame].caller
        return lines

    def counts(self) -> Counter[str]:
        """Return how often each instruction occurs in the program text, the starts of asynchronous
        collectives under the plain name."""
        opcodes = Counter(instruction.opcode for instruction in self._all())
        for name in COLLECTIVES:
            opcodes[name] += opcodes.pop(f"{name}-start", 0)
        return +opcodes

    def collectives(self) -> list[Instruction]:
        """Return the instructions that exchange data between devices."""
        names = {*COLLECTIVES, *(f"{name}-start" for name in COLLECTIVES)}
        return [instruction for instruction in self._all() if instruction.opcode in names]

    def _all(self) -> Iterator[Instruction]:
        for computation in self.computations.values():
            yield from computation.values()


def parse(text: str) -> Module:
    """Parse the text of a compiled program.

    Raises:
      ValueError: it has no entry computation.
    """
    computations: dict[str, Computation] = {}
    entry: str | None = None
    current: Computation = {}
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] = {}
    for line in text.splitlines():
        if re.fullmatch(r"[A-Za-z]+", line):
            table = tables[line] = {}
            continue
        entry_of_table = _TABLE_LINE.match(line)
        if entry_of_table:
            table[int(entry_of_table[1])] = entry_of_table[2] or entry_of_table[3] or ""
            continue
        header = _HEADER.match(line)
        if header:
            current = computations[header[2]] = {}
            entry = header[2] if header[1] else entry
            continue
        matched = _INSTRUCTION.match(line)
        if matched:
            current[matched[1]] = _instruction(matched[1], matched[2])
    if entry is None:
        raise ValueError("the text of the compiled program has no ENTRY computation")
    return Module(computations, entry, _frames(tables))


def _frames(tables: dict[str, dict[int, str]]) -> dict[int, Frame]:
    """Return the stack frames from the tables at the head of a program's text."""

    def numbers(fields: str) -> dict[str, int]:
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", fields)}

    files = tables.get("FileNames", {})
    places = {key: numbers(row) for key, row in tables.get("FileLocations", {}).items()}
    rows = {key: numbers(row) for key, row in tables.get("StackFrames", {}).items()}
    # The TPU compiler prints the numbers of callers one too high: an outermost frame has 1, not 0.
    none = min((row.get("parent_frame_id", 0) for row in rows.values()), default=0)
    frames = {}
    for key, row in rows.items():
        place = places[row["file_location_id"]]
        source = SourceLine(files[place["file_name_id"]], place["line"])
        frames[key] = Frame(source, row.get("parent_frame_id", 0) - none)
    return frames


def _instruction(name: str, rest: str) -> Instruction:
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:]
    opcode = _OPCODE.match(rest)
    if opcode is None:
        raise ValueError(
            f"instruction {name} of the compiled program has no operation: {rest[:80]!r}"
        )
    close = _closing(rest, opcode.end() - 1)
    inside = rest[opcode.end() : close]
    number = int(inside) if re.fullmatch(r"-?\d+", inside) else 0
    operands = tuple(re.findall(r"%([\w.\-]+)", inside))
    arrays, attributes = parse_shape(shape), rest[close + 1 :]
    return Instruction(name, opcode[1], arrays, operands, attributes, number)


def parse_shape(text: str) -> tuple[Array, ...]:
    """Return the arrays of a shape as printed, `bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)}` or a
    tuple of such."""

    def sides(dims: str) -> tuple[int, ...]:
        return tuple(int(side.removeprefix("<=")) for side in dims.split(",") if side)

    found = _ARRAY.findall(text)
    return tuple(Array(dtype, sides(dims), layout or "") for dtype, dims, layout in found)


def _closing(text: str, start: int) -> int:
    """Return the place of the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise ValueError(f"a parenthesis is not closed in the compiled program: {text[:80]!r}")
