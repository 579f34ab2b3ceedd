"""What a compiled program costs: arithmetic, memory traffic, time at the roofline. Loops count as
often as they run.

XLA's own analysis counts a loop body once. Here it counts as often as its known trip count; a loop
whose length depends on data (the descent into a tree, the flood of a chain of stones) counts
`ASSUMED_TURNS` times.
"""

import math
import operator
import re
from dataclasses import dataclass
from typing import NamedTuple

from azero.plan.hlo import COLLECTIVES, Computation, Instruction, Module
from azero.plan.loops import Loops

ASSUMED_TURNS = 8
"""Iterations of a loop of unknown length: a planning figure, between a flood fill (a few) and a
tree descent (tens). Their bodies are small compared with the network."""
_PRECISE_PASSES = 6
"""Multiplications of bf16 parts that make one float32 product at the highest precision (XLA:
bf16_6x)."""
_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"),
    *("partition-id", "replica-id", "opt-barrier", "domain", "get-dimension-size"),
}
"""Instructions without memory traffic."""
_ALLOCATION = 'custom_call_target="AllocateBuffer"'
"""A call that only reserves memory."""
_SLICES = {"dynamic-slice", "gather", "slice"}
"""Instructions that read no more than they return."""
_UPDATES = {"dynamic-update-slice": 1, "scatter": 2}
"""Instructions that write into their first operand, and the place of the operand with the new
values."""
_ASYNCHRONOUS_COPIES = {
    "copy-start",
    "slice-start",
    "dynamic-slice-start",
    "dynamic-update-slice-start",
}
"""Copies that overlap with compute; they count as traffic, not as time."""


class Rates(NamedTuple):
    """Peak rates of one device."""

    flops: float
    """bf16 operations per second."""
    bandwidth: float
    """Bytes of main memory per second."""
    links: float
    """Bytes per second to other devices, in one direction."""
    num_devices: int
    """Devices that take part in a collective."""


@dataclass(frozen=True)
class Cost:
    """The work of one device in a part of a program."""

    flops: float = 0.0
    """Multiplications and additions of convolutions and matrix products; elementwise operations are
    bound by memory traffic."""
    hbm_bytes: float = 0.0
    """Bytes read from and written to main memory."""
    exchanged_bytes: float = 0.0
    """Input bytes of collectives."""
    seconds: float = 0.0
    """Sum over the instructions of the larger of arithmetic at the peak rate and traffic at full
    bandwidth."""
    unknown_loops: int = 0
    """Loops of unknown length."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(operator.add, vars(self).values(), vars(other).values()))

    def times(self, count: float) -> "Cost":
        """Return the cost of `count` repetitions; a loop stays one loop."""
        flops, hbm_bytes = count * self.flops, count * self.hbm_bytes
        exchanged_bytes, seconds = count * self.exchanged_bytes, count * self.seconds
        return Cost(flops, hbm_bytes, exchanged_bytes, seconds, self.unknown_loops)


def module_cost(module: Module, rates: Rates) -> Cost:
    """Return what one run of the program costs one device."""
    return Counter(module, rates).computation(module.entry)


class Counter:
    """Adds up the cost of a module; each computation is analysed once."""

    def __init__(self, module: Module, rates: Rates) -> None:
        """Count with the peak rates of a device."""
        self._module = module
        self._rates = rates
        self._loops = Loops(module)
        self._known: dict[str, Cost] = {}

    def computation(self, name: str) -> Cost:
        """Return the cost of one run of a computation."""
        if name not in self._known:
            body = self._module.computations[name]
            self._known[name] = sum(
                (self.instruction(instruction, name) for instruction in body.values()), Cost()
            )
        return self._known[name]

    def called(self, instruction: Instruction, where: str) -> list[tuple[str, float]] | None:
        """Return the computations that an instruction of the computation `where` runs, and how
        often; None for one that does the work itself. Of alternatives it is the longest."""
        if instruction.opcode == "while":
            turns = self._loops.trip_count(instruction, where)
            count = float(ASSUMED_TURNS if turns is None else turns)
            return [(name, count) for name in instruction.called("body", "condition")]
        if instruction.opcode == "conditional":
            branches = instruction.called(
                "branch_computations", "true_computation", "false_computation"
            )
            return [(max(branches, key=lambda name: self.computation(name).seconds), 1.0)]
        if instruction.opcode in ("call", "async-start"):
            return [(name, 1.0) for name in instruction.called("to_apply", "calls")]
        return None

    def instruction(self, instruction: Instruction, where: str) -> Cost:
        """Return the cost of an instruction of the computation `where`."""
        opcode, body = instruction.opcode, self._module.computations[where]
        if is_free(instruction):
            return Cost()
        called = self.called(instruction, where)
        if called is not None:
            is_unknown = opcode == "while" and self._loops.trip_count(instruction, where) is None
            parts = (self.computation(name).times(count) for name, count in called)
            return sum(parts, Cost(unknown_loops=int(is_unknown)))
        if opcode.removesuffix("-start") in COLLECTIVES:
            return self._collective(instruction, body)
        return self._work(instruction, body)

    def _collective(self, instruction: Instruction, body: Computation) -> Cost:
        arrays = [array for name in instruction.operands for array in body[name].arrays]
        taken = sum(array.num_bytes for array in arrays)
        moved = 2 * sum(array.hbm_bytes for array in arrays)
        rates = self._rates
        # A ring: every device sends its part n - 1 times to collect the sum and, in an all-reduce,
        # as often again to spread it.
        rounds = (rates.num_devices - 1) / rates.num_devices
        rounds *= 2 if instruction.opcode.startswith("all-reduce") else 1
        seconds = max(rounds * taken / rates.links, moved / rates.bandwidth)
        return Cost(0.0, moved, taken, seconds)

    def _work(self, instruction: Instruction, body: Computation) -> Cost:
        flops, effort = self._arithmetic(instruction, body)
        moved = traffic(instruction, body, self._module)
        seconds = max(effort / self._rates.flops, moved / self._rates.bandwidth)
        is_asynchronous = instruction.opcode in _ASYNCHRONOUS_COPIES
        return Cost(flops, moved, 0.0, 0.0 if is_asynchronous else seconds)

    def _arithmetic(self, instruction: Instruction, body: Computation) -> tuple[float, float]:
        """Return the operations of an instruction, and the bf16 operations that they take."""
        if instruction.opcode == "fusion":
            parts = [self._module.computations[name] for name in instruction.called("calls")]
            counted = [self._arithmetic(inner, part) for part in parts for inner in part.values()]
            return sum(flops for flops, _ in counted), sum(effort for _, effort in counted)
        flops = product_flops(instruction, body)
        is_precise = "operand_precision={highest" in instruction.attributes
        return flops, flops * (_PRECISE_PASSES if is_precise else 1)


def is_free(instruction: Instruction) -> bool:
    """Return whether an instruction does nothing by itself, like the end of an asynchronous one."""
    return (
        instruction.opcode in _FREE
        or instruction.opcode.endswith(("-done", "-update"))
        or _ALLOCATION in instruction.attributes
    )


def product_flops(instruction: Instruction, body: Computation) -> float:
    """Return the operations of a convolution or a matrix product, two for each product of entries;
    border points count like all others. Else zero."""
    if instruction.opcode == "convolution":
        labels = re.search(r"dim_labels=\w+_(\w+)->", instruction.attributes)
        window = re.search(r"window=\{size=([\dx]+)", instruction.attributes)
        kernel = body[instruction.operands[1]].arrays[0]
        inputs = kernel.dims[labels[1].index("i")] if labels else 1
        taps = math.prod(map(int, window[1].split("x"))) if window else 1
        return 2.0 * instruction.arrays[0].size * taps * inputs
    if instruction.opcode == "dot":
        contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", instruction.attributes)
        left = body[instruction.operands[0]].arrays[0]
        axes = [int(axis) for axis in contracted[1].split(",") if axis] if contracted else []
        return 2.0 * instruction.arrays[0].size * math.prod(left.dims[axis] for axis in axes)
    return 0.0


def traffic(instruction: Instruction, body: Computation, module: Module) -> float:
    """Return the bytes of main memory that an instruction reads and writes.

    What is sliced or gathered counts with the size of the slice, what is updated in place with that
    of the update: a search step touches one node of each tree.
    """
    if instruction.opcode == "fusion":
        inner = module.computations[instruction.called("calls")[0]]
        # Memory spaces are known outside of a fusion, what is taken of its parameters inside.
        outside = [body[name].hbm_bytes for name in instruction.operands]
        read = sum(
            min(_read(part, inner, module), outside[part.number])
            for part in inner.values()
            if part.opcode == "parameter"
        )
        return read + min(_written(next(reversed(inner)), inner, module), instruction.hbm_bytes)
    if instruction.opcode in _SLICES:
        return 2 * instruction.hbm_bytes
    if instruction.opcode in _UPDATES:
        new = body[instruction.operands[_UPDATES[instruction.opcode]]]
        return 2 * min(new.hbm_bytes, instruction.hbm_bytes)
    if instruction.opcode in _ASYNCHRONOUS_COPIES:
        return instruction.hbm_bytes  # a tuple of the target and the source
    return sum(body[name].hbm_bytes for name in instruction.operands) + instruction.hbm_bytes


def _read(parameter: Instruction, inner: Computation, module: Module) -> float:
    """Return the bytes of a fusion's parameter that are read: all of it, or slices where nothing
    else is taken, or nothing where it is only written to."""
    names = {parameter.name}
    total = 0.0
    for user in inner.values():
        places = [place for place, name in enumerate(user.operands) if name in names]
        if not places:
            continue
        if user.opcode == "bitcast":
            names.add(user.name)
        elif user.opcode in _SLICES and places == [0]:
            total += user.hbm_bytes
        elif user.opcode == "fusion":
            nested = module.computations[user.called("calls")[0]]
            total += sum(
                _read(part, nested, module)
                for part in nested.values()
                if part.opcode == "parameter" and part.number in places
            )
        elif not (user.opcode in _UPDATES and places == [0]):
            return parameter.hbm_bytes
    return total


def _written(name: str, inner: Computation, module: Module) -> float:
    """Return the bytes that a fusion writes for its result `name`: of an update in place only the
    new values."""
    result = inner[name]
    if result.opcode == "bitcast":
        return _written(result.operands[0], inner, module)
    if result.opcode == "tuple":
        return sum(_written(part, inner, module) for part in result.operands)
    if result.opcode in _UPDATES:
        return inner[result.operands[_UPDATES[result.opcode]]].hbm_bytes
    if result.opcode == "fusion":
        nested = module.computations[result.called("calls")[0]]
        return _written(next(reversed(nested)), nested, module)
    return result.hbm_bytes
