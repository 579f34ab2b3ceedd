"""Where a compiled program spends its time, by the TPU compiler's own estimates.

The optimised program carries an estimate of the cycles of one run for most instructions. Added up,
with loops as often as they run, and divided by the clock rate, they are a profile that needs no
TPU. Each line also has the roofline time of the same instructions (`azero.plan.cost`). It becomes
tables, plain values and an image.
"""

import dataclasses
import functools
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rich.table import Table

from azero.console.tables import format_duration, make_table
from azero.plan.cost import Counter, Rates, is_free, product_flops
from azero.plan.hlo import Computation, Instruction, Module

K = TypeVar("K")
"""The key of a table of times."""
SHOWN_LINES = 12
"""Source lines of each program in the tables; `--json` has all of them."""

_PACKAGE = Path(__file__).parents[1]
CONVOLUTIONS, COPIES, OTHER = "convolutions and products", "copies", "other"
_PARTS = (
    (r"networks/", "network, the rest"),
    (r"search/leaf|games/symmetry|games/.*/encoding", "planes and symmetries"),
    (r"search/", "search tree"),
    (r"games/", "rules"),
    (r"selfplay/", "self-play"),
    (r"learn/", "loss and optimiser"),
    (r"data/", "samples"),
)
"""How names of source files in the package begin, and the part of a program to which their lines
belong; the first match counts."""
_COPIES = {"copy", "copy-start", "copy-done", "transpose", "bitcast-convert"}
"""Instructions that move an array or change its layout."""


class Line(NamedTuple):
    """A source line that a program spends time in."""

    part: str
    source: str
    """File and line, as in search/batched/tree.py:419; empty where the compiler names none."""
    operation: str
    """The JAX primitive, or for copies the shape that is copied."""


@dataclass(frozen=True)
class Time:
    """Time of one device in a part of a program."""

    seconds: float = 0.0
    """By the compiler's estimates."""
    roofline: float = 0.0
    """Seconds at the roofline, of all its instructions."""
    unestimated: float = 0.0
    """Seconds at the roofline of those for which the compiler makes no estimate: sorts, most
    gathers and scatters of rows."""
    unestimated_runs: float = 0.0
    """How often those run; single numbers and asynchronous copies are not counted."""
    runs: float = 0.0
    """How often instructions run in it."""

    def __add__(self, other: "Time") -> "Time":
        return Time(*map(operator.add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class Profile:
    """Time by source line, the longest first."""

    lines: dict[Line, Time]

    @property
    def total(self) -> Time:
        """Return the time of the whole program."""
        return sum(self.lines.values(), Time())

    @property
    def parts(self) -> dict[str, Time]:
        """Return the time by part, the longest first."""
        parts: dict[str, Time] = {}
        for line, time in self.lines.items():
            parts[line.part] = parts.get(line.part, Time()) + time
        return _longest_first(parts)

    @property
    def outside_convolutions(self) -> float:
        """Return the share of the time outside convolutions and products, from 0 to 1."""
        total = self.total.seconds
        return 1.0 - self.parts.get(CONVOLUTIONS, Time()).seconds / total if total else 0.0


def profile(module: Module, rates: Rates, clock: float) -> Profile:
    """Return where one run of the program spends its time, on a device of `clock` cycles a
    second."""
    counter = Counter(module, rates)
    lines: dict[Line, Time] = {}
    for instruction, where, runs in _executed(module, counter, module.entry, 1.0):
        roofline = runs * counter.instruction(instruction, where).seconds
        if (cycles := instruction.cycles) is not None:
            time = Time(runs * cycles / clock, roofline, runs=runs)
        else:
            time = Time(0.0, roofline, roofline, runs * _is_work(instruction), runs)
        if time.seconds or time.roofline or time.unestimated_runs:
            line = _line(module, instruction, module.computations[where])
            lines[line] = lines.get(line, Time()) + time
    return Profile(_longest_first(lines))


def _is_work(instruction: Instruction) -> bool:
    """Return whether an instruction makes more than a number and does not overlap with others."""
    is_asynchronous = instruction.opcode.endswith("-start")
    is_number = all(array.size == 1 for array in instruction.arrays)
    return not (is_free(instruction) or is_asynchronous or is_number)


def _longest_first(times: dict[K, Time]) -> dict[K, Time]:
    return dict(sorted(times.items(), key=lambda item: item[1].seconds, reverse=True))


def _executed(
    module: Module, counter: Counter, name: str, runs: float
) -> Iterator[tuple[Instruction, str, float]]:
    """Yield the instructions that work in a run of computation `name`, where each is, and how often
    it runs."""
    for instruction in module.computations[name].values():
        called = counter.called(instruction, name)
        if called is None:
            yield instruction, name, runs
        for inner, count in called or ():
            yield from _executed(module, counter, inner, runs * count)


def _line(module: Module, instruction: Instruction, body: Computation) -> Line:
    named = _named(module, instruction)
    files = ((_own_file(line.file), line.line) for line in module.stack(named.frame))
    source = next((f"{file}:{line}" for file, line in files if file), "")
    if _has_product(module, instruction, body):
        return Line(CONVOLUTIONS, source, _primitive(named))
    if _is_copy(module, instruction):
        array = instruction.arrays[0]
        shape = f"{array.dtype}[{','.join(map(str, array.dims))}]"
        return Line(COPIES, source, f"{instruction.opcode} {shape}")
    parts = (part for start, part in _PARTS if re.match(start, source))
    return Line(next(parts, OTHER), source, _primitive(named))


def _named(module: Module, instruction: Instruction) -> Instruction:
    """Return the instruction, or where the compiler names no source of a fusion, the last one in it
    that has one."""
    if instruction.frame is not None or instruction.opcode != "fusion":
        return instruction
    inner = module.computations[instruction.called("calls")[0]]
    return next((part for part in reversed(inner.values()) if part.frame), instruction)


@functools.cache
def _own_file(file: str) -> str:
    """Return the name within this package of a source file, wherever the package was installed when
    the program was compiled; empty for a file of another one."""
    _, package, name = file.rpartition(f"/{_PACKAGE.name}/")
    return name if package and (_PACKAGE / name).is_file() else ""


def _primitive(instruction: Instruction) -> str:
    return instruction.scopes.rpartition("/")[2] or instruction.opcode


def _has_product(module: Module, instruction: Instruction, body: Computation) -> bool:
    if instruction.opcode == "fusion":
        inner = module.computations[instruction.called("calls")[0]]
        return any(_has_product(module, part, inner) for part in inner.values())
    return product_flops(instruction, body) > 0


def _is_copy(module: Module, instruction: Instruction) -> bool:
    """Return whether an instruction only moves an array."""
    if instruction.opcode == "fusion":
        inner = module.computations[instruction.called("calls")[0]]
        moved = {"parameter", "bitcast", "tuple", *_COPIES}
        opcodes = {part.opcode for part in inner.values()}
        return bool(opcodes & _COPIES) and opcodes <= moved
    return instruction.opcode in _COPIES


def profile_tables(profiles: Mapping[str, Profile]) -> list[Table]:
    """Return for each program its parts, and the source lines that take the most time."""
    return [
        table
        for name, found in profiles.items()
        if found.lines
        for table in (_parts_table(name, found), _lines_table(found))
    ]


def _parts_table(name: str, found: Profile) -> Table:
    total = found.total
    title = (
        f"{name}: {format_time(total.seconds)} by the compiler's estimates, "
        f"{format_percent(found.outside_convolutions)} of it outside convolutions"
    )
    rows = [
        (part, *_times(time, total), _unestimated(time))
        for part, time in (*found.parts.items(), ("in all", total))
    ]
    columns = ("part", "estimate", "share", "roofline", "not estimated")
    return make_table(title, columns, rows)


def _lines_table(found: Profile) -> Table:
    total = found.total
    rows = [
        (
            line.source or "(none named)",
            line.operation,
            f"{time.runs:,.0f}",
            *_times(time, total)[:2],
        )
        for line, time in list(found.lines.items())[:SHOWN_LINES]
    ]
    table = make_table("", ("source line", "operation", "runs", "estimate", "share"), rows)
    table.columns[0].no_wrap = True
    return table


def _unestimated(time: Time) -> str:
    runs, roofline = f"{time.unestimated_runs:,.0f}", format_time(time.unestimated)
    return f"{runs} runs, roofline {roofline}" if time.unestimated_runs else ""


def _times(time: Time, total: Time) -> tuple[str, str, str]:
    share = time.seconds / total.seconds if total.seconds else 0.0
    return format_time(time.seconds), format_percent(share), format_time(time.roofline)


def format_time(seconds: float) -> str:
    """Return a time with its unit, in milliseconds below a second: 12.6 ms."""
    return format_duration(seconds) if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def format_percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * share:.1f}%"


def profile_json(found: Profile) -> dict[str, Any]:
    """Return a profile as plain values; times are in seconds."""
    return {
        **dataclasses.asdict(found.total),
        "outside_convolutions": found.outside_convolutions,
        "parts": {part: dataclasses.asdict(time) for part, time in found.parts.items()},
        "lines": [
            {**line._asdict(), **dataclasses.asdict(time)} for line, time in found.lines.items()
        ],
    }


def save_picture(path: Path, title: str, profiles: Mapping[str, Profile]) -> None:
    """Write an image with a bar for each program, divided into its parts; the suffix determines the
    format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    from azero.report.plots import save_bars

    bars = {
        f"{name}, {format_time(found.total.seconds)}": {
            part: time.seconds for part, time in found.parts.items()
        }
        for name, found in profiles.items()
        if found.lines
    }
    save_bars(path, title, bars)
