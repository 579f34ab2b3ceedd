"""What a compiled program does, read from its optimised HLO: arithmetic, bytes and collectives, with the bodies of loops as often as they run.

(The compiler's own `cost_analysis` counts the body of a loop once.) A loop that runs until its data say so has no known count: it is taken once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
"""Bytes of an element by HLO's name of its type."""
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "collective-broadcast", "reduce-scatter")
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id", "opt-barrier"}
"""Operations that neither compute nor move anything."""
MOVES = {
    "copy",
    "broadcast",
    "reshape",
    "transpose",
    "slice",
    "dynamic-slice",
    "dynamic-update-slice",
    "gather",
    "scatter",
    "concatenate",
    "pad",
    "iota",
    "reverse",
}
"""Operations that move numbers and compute none."""
SLICES = ("dynamic-slice", "gather", "slice")
"""Operations that read only what they return."""

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


class Cost(NamedTuple):
    """What one run of a program does."""

    flops: float
    """Multiplications, additions, comparisons and the like."""
    bytes: float
    """Read and written by its operations; what a fusion keeps to itself is not counted."""
    collectives: float

    def times(self, count: int) -> Cost:
        """Return the cost of `count` runs."""
        return Cost(*(count * part for part in self))


def _total(costs: Iterable[Cost]) -> Cost:
    return Cost(*(sum(parts) for parts in zip(Cost(0, 0, 0), *costs, strict=True)))


class _Instruction(NamedTuple):
    name: str
    shape: str
    opcode: str
    operands: list[str]
    rest: str
    """Everything after the opening parenthesis."""
    is_root: bool


def program_cost(text: str) -> Cost:
    """Return the cost of the program whose optimised HLO is `text`, the entry computation run once (on one device)."""
    return _Program(text).cost_of(re.search(r"^ENTRY %?([\w.\-]+)", text, re.MULTILINE).group(1))  # type: ignore[union-attr]


class _Program:
    """The computations of a module by name, and their costs."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, dict[str, _Instruction]] = {}
        for name, instruction in _instructions(text):
            self.computations.setdefault(name, {})[instruction.name] = instruction
        self.known: dict[str, Cost] = {}

    def cost_of(self, name: str) -> Cost:
        """Return the cost of one run of the computation `name`."""
        if name not in self.known:
            body = self.computations.get(name, {})
            self.known[name] = _total(self._instruction(body, instruction) for instruction in body.values())
        return self.known[name]

    def _instruction(self, body: dict[str, _Instruction], it: _Instruction) -> Cost:
        if it.opcode in FREE:
            return Cost(0, 0, 0)
        called = _called(it.rest)
        if it.opcode == "while":
            trips = _TRIPS.search(it.rest)
            return _total(self.cost_of(name) for name in called).times(int(trips.group(1)) if trips else 1)
        if it.opcode == "conditional":
            return max((self.cost_of(name) for name in called), key=lambda cost: cost.flops)
        if it.opcode == "call":
            return self.cost_of(called[0])
        if it.opcode == "fusion":
            inside = self.computations[called[0]]
            return Cost(self.cost_of(called[0]).flops, self._fusion_bytes(body, inside, it), 0)
        is_collective = any(it.opcode in (name, f"{name}-start") for name in COLLECTIVES)
        return Cost(_flops(body, it), _bytes(body, it), float(is_collective))

    def _fusion_bytes(self, body: dict[str, _Instruction], inside: dict[str, _Instruction], it: _Instruction) -> float:
        """Return what a fusion reads and writes: of an operand that it only slices, the slices; of an array that it updates in place, the update."""
        read = 0.0
        for instruction in inside.values():
            if instruction.opcode == "parameter":
                operand = it.operands[int(instruction.rest.split(")")[0])]
                part = _touched(inside, instruction.name)
                whole = _size(body[operand].shape) if operand in body else _size(instruction.shape)
                read += whole if part is None else min(whole, part)
        return read + _written(inside, next(instruction for instruction in inside.values() if instruction.is_root))


def _instructions(text: str) -> Iterator[tuple[str, _Instruction]]:
    computation = ""
    for line in text.splitlines():
        if header := _COMPUTATION.match(line):
            computation = header.group(1)
        elif match := _INSTRUCTION.match(line):
            name, shape, opcode, rest = match.groups()
            operands = _OPERAND.findall(rest.split("), ")[0])
            yield computation, _Instruction(name, shape, opcode, operands, rest, line.lstrip().startswith("ROOT"))


def _called(rest: str) -> list[str]:
    listed = re.search(r"branch_computations=\{(.*?)\}", rest)
    if listed:
        return _OPERAND.findall(listed.group(1))
    return re.findall(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)", rest)


def _touched(inside: dict[str, _Instruction], name: str) -> float | None:
    """Return the bytes that a fusion takes of `name` where it only takes slices or puts one in; None is all of them."""
    touched = 0.0
    for user in inside.values():
        if name not in user.operands:
            continue
        part: float | None = None
        if user.opcode == "bitcast":
            part = _touched(inside, user.name)
        elif user.opcode in SLICES and user.operands[0] == name:
            part = _size(user.shape)
        elif user.opcode == "dynamic-update-slice" and user.operands[0] == name:
            part = _size(inside[user.operands[1]].shape)
        if part is None:
            return None
        touched += part
    return touched


def _written(inside: dict[str, _Instruction], root: _Instruction) -> float:
    """Return the bytes of a fusion's result that it really writes."""
    if root.opcode == "dynamic-update-slice":
        return _size(inside[root.operands[1]].shape)
    if root.opcode in ("bitcast", "tuple"):
        return sum(_written(inside, inside[operand]) for operand in root.operands)
    return _size(root.shape)


def _bytes(body: dict[str, _Instruction], it: _Instruction) -> float:
    if it.opcode in SLICES:
        return 2 * _size(it.shape)
    if it.opcode == "dynamic-update-slice":
        return 2 * _size(body[it.operands[1]].shape)
    if it.opcode == "scatter":
        return 3 * _size(body[it.operands[-1]].shape)
    return _size(it.shape) + sum(_size(body[operand].shape) for operand in it.operands if operand in body)


def _flops(body: dict[str, _Instruction], it: _Instruction) -> float:
    count = _elements(it.shape)
    if it.opcode == "dot":
        contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", it.rest)
        sizes = _dimensions(body[it.operands[0]].shape)
        return 2.0 * count * math.prod(sizes[int(axis)] for axis in contracted.group(1).split(",") if axis) if contracted else 2.0 * count
    if it.opcode == "convolution":
        labels = re.search(r"dim_labels=\w+_(\w+)->", it.rest)
        kernel = _dimensions(body[it.operands[1]].shape)
        return 2.0 * count * math.prod(kernel) / kernel[labels.group(1).index("o")] if labels else 2.0 * count
    if it.opcode in ("reduce", "reduce-window"):
        return sum(_elements(body[operand].shape) for operand in it.operands[: len(it.operands) // 2])
    return 0.0 if it.opcode in MOVES else float(count)


def _dimensions(shape: str) -> list[int]:
    match = _SHAPE.search(shape)
    return [int(size) for size in match.group(2).split(",") if size] if match else []


def _elements(shape: str) -> int:
    return sum(math.prod(int(size) for size in sizes.split(",") if size) for _, sizes in _SHAPE.findall(shape))


def _size(shape: str) -> float:
    return float(sum(BYTES.get(name, 0) * math.prod(int(size) for size in sizes.split(",") if size) for name, sizes in _SHAPE.findall(shape)))
