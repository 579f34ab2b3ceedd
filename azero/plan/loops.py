"""How often the loops of a compiled program run.

The TPU compiler does not print it. A loop over a fixed range counts upwards in its state until it
reaches a constant, so both ends can be looked up, through the copies and the states of outer loops
in which the compiler carries constants along.
"""

from azero.plan.hlo import Computation, Instruction, Module

_SAME = {"copy", "bitcast", "opt-barrier", "convert"}
"""Instructions that return their operand unchanged."""


class Loops:
    """The loops of one module."""

    def __init__(self, module: Module) -> None:
        """Find out which loop runs which computation."""
        self._module = module
        self._loop_of: dict[str, tuple[Instruction, str]] = {}
        for name, computation in module.computations.items():
            for instruction in computation.values():
                if instruction.opcode == "while":
                    for called in instruction.called("body", "condition"):
                        self._loop_of[called] = (instruction, name)

    def trip_count(self, loop: Instruction, where: str) -> int | None:
        """Return how often the body of `loop`, an instruction of the computation `where`, runs;
        None if that depends on data."""
        if loop.trip_count() is not None:
            return loop.trip_count()
        (condition,) = loop.called("condition")
        index, end = self._end(condition)
        if index is None or end is None:
            return None
        first, step = self._part(loop.operands[0], index, where), self._step(loop, index)
        return None if first is None or step is None else max(0, -(-(end - first) // step))

    def _end(self, condition: str) -> tuple[int | None, int | None]:
        """Return the place of the counter in the loop's state and the number below which it stays;
        None where the condition is another one."""
        computation = self._module.computations[condition]
        test = _result(computation)
        if test.opcode == "fusion":
            inner = self._module.computations[test.called("calls")[0]]
            compared = _result(inner)
            sides = [
                test.operands[inner[name].number] if inner[name].opcode == "parameter" else name
                for name in compared.operands
            ]
            computation = {**inner, **computation}
        else:
            compared, sides = test, list(test.operands)
        if compared.opcode != "compare" or "direction=LT" not in compared.attributes:
            return None, None
        counter = _original(computation, sides[0])
        return counter.index(), self._value(computation[sides[1]], condition)

    def _step(self, loop: Instruction, index: int) -> int | None:
        """Return the increment of the counter."""
        (body,) = loop.called("body")
        computation = self._module.computations[body]
        state = _result(computation)
        name = state.operands[index] if state.opcode == "tuple" else state.name
        grown = _original(computation, name)
        if grown.opcode != "add":
            return None
        values = [self._value(computation[name], body) for name in grown.operands]
        return next((value for value in values if value), None)

    def _part(self, name: str, index: int, where: str) -> int | None:
        """Return the number at place `index` of the tuple `name` of the computation `where`, if it
        is a constant."""
        source = self._module.computations[where][name]
        if source.opcode == "tuple":
            return self._value(self._module.computations[where][source.operands[index]], where)
        if source.opcode == "while" and self._is_unchanged(source, index):
            return self._part(source.operands[0], index, where)
        if source.opcode == "parameter" and where in self._loop_of:
            loop, outside = self._loop_of[where]
            if self._is_unchanged(loop, index):
                return self._part(loop.operands[0], index, outside)
        return None

    def _value(self, source: Instruction, where: str) -> int | None:
        if source.opcode == "constant":
            return source.number
        computation = self._module.computations[where]
        if source.opcode in _SAME:
            return self._value(computation[source.operands[0]], where)
        index = source.index()
        return None if index is None else self._part(source.operands[0], index, where)

    def _is_unchanged(self, loop: Instruction, index: int) -> bool:
        """Return whether the body of `loop` leaves this part of its state as it is."""
        (body,) = loop.called("body")
        computation = self._module.computations[body]
        state = _result(computation)
        if state.opcode != "tuple":
            return False
        part = _original(computation, state.operands[index])
        return part.index() == index and computation[part.operands[0]].opcode == "parameter"


def _original(computation: Computation, name: str) -> Instruction:
    """Return the instruction `name`, or the one whose result it passes on unchanged."""
    instruction = computation[name]
    while instruction.opcode in _SAME:
        instruction = computation[instruction.operands[0]]
    return instruction


def _result(computation: Computation) -> Instruction:
    return computation[next(reversed(computation))]
