"""Everything that fits this machine, each part in a separate process: `azero bench all`.

A part that fails is reported and the others continue. With --json a record is on disk as soon as
its part is done, and with --resume it is not measured again.
"""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from azero.bench.parts import PARTS, Figure, Record, environment
from azero.console.progress import working
from azero.console.terminal import make_console
from azero.data.rows import RowFile, read_rows

LIMIT_SECONDS, QUICK_LIMIT_SECONDS = 1800.0, 400.0
"""A part that takes longer is cancelled: 19x19 with 20 blocks of 256 may take half an hour to
compile and run twice; a quick part on a busy laptop takes minutes."""
STANDARD_ERROR = 2
"""File descriptor."""
ERROR_CHARACTERS = 2000
"""Characters of a failed part's error output that are read for its last line."""


@dataclass(frozen=True)
class EverythingArguments:
    """Measure everything that fits this machine."""

    quick: bool = False
    """Shorter and with fewer sizes: minutes instead of an hour, and less precise."""
    json: Path | None = None
    """Append a JSON record for each part to this file when it finishes."""
    resume: bool = False
    """Do not repeat parts that the file has for these devices; show their figures with the rest."""
    markdown: bool = False
    """Print the table as Markdown on standard output; everything else goes to standard error."""
    only: tuple[str, ...] = ()
    """Only these parts, such as train "loop 9x9"."""


def run(arguments: EverythingArguments, console: Console) -> list[Record]:
    """Measure the parts one after the other and return their records.

    Raises:
      ValueError: a part is unknown, or --resume is given without --json.
    """
    if unknown := [name for name in arguments.only if name not in PARTS]:
        raise ValueError(f"unknown part {unknown[0]!r}; the parts are: {', '.join(PARTS)}")
    if arguments.resume and arguments.json is None:
        raise ValueError("--resume needs the file with the records: --json FILE")
    with working("looking for devices", console):
        device = _child("device", [], dict(os.environ), QUICK_LIMIT_SECONDS)
    kept = read_records(arguments.json) if arguments.resume and arguments.json else []
    newest = {record.part: record for record in kept}
    known = {
        name: record
        for name, record in newest.items()
        if (record.device, record.quick) == (device, arguments.quick) and record.status != "failed"
    }
    records = []
    names = arguments.only or tuple(PARTS)
    for number, name in enumerate(names, 1):
        record = known.get(name)
        if record is None:
            with working(f"part {number} of {len(names)}: {name}", console):
                record = measure(name, device, arguments.quick)
            if arguments.json is not None:
                with RowFile(arguments.json) as file:
                    file.append(dataclasses.asdict(record))
        console.print(
            f"{name}: {record.status}{f': {record.reason}' if record.reason else ''}",
            highlight=False,
            soft_wrap=True,
        )
        records.append(record)
    return records


def measure(name: str, device: str, quick: bool) -> Record:
    """Measure one part in a separate process; an error there becomes the record's reason."""
    if PARTS[name].accelerators_only and device.endswith(" cpu"):
        return Record(name, "skipped", device, quick, 0.0, reason="it takes too long on a CPU")
    began, limit = time.monotonic(), QUICK_LIMIT_SECONDS if quick else LIMIT_SECONDS
    try:
        text = _child(name, ["--quick"] if quick else [], environment(name), limit)
        return dataclasses.replace(_record(json.loads(text)), device=device)
    except ValueError as error:
        return Record(name, "failed", device, quick, time.monotonic() - began, reason=str(error))


def _child(name: str, flags: Sequence[str], variables: dict[str, str], limit: float) -> str:
    """Run `azero.bench.parts` for `name` and return what it writes; its own output goes to standard
    error.

    Raises:
      ValueError: it failed or took longer than `limit` seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, errors = Path(folder) / "record", Path(folder) / "errors"
        command = [sys.executable, "-m", "azero.bench.parts", name, str(path), *flags]
        with errors.open("w") as file:
            # A session of its own, so that what the part has started ends with it.
            process = subprocess.Popen(
                command, env=variables, stdout=STANDARD_ERROR, stderr=file, start_new_session=True
            )
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                raise ValueError(f"no result after {limit:.0f} s") from None
            finally:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if process.returncode or not path.exists():
            lines = errors.read_text(errors="replace")[-ERROR_CHARACTERS:].strip().splitlines()
            raise ValueError(lines[-1] if lines else f"it ended with status {process.returncode}")
        return path.read_text(encoding="utf-8")


def read_records(path: Path) -> list[Record]:
    """Return the records of a file, none where there is no file yet.

    Raises:
      ValueError: a line is not a record.
    """
    try:
        return [_record(row) for row in read_rows(path)]
    except (TypeError, KeyError):
        raise ValueError(
            f"{path} is not a file of azero bench all; give --json another file"
        ) from None


def _record(fields: dict) -> Record:
    return Record(**{**fields, "figures": [Figure(**figure) for figure in fields["figures"]]})


def markdown(records: Sequence[Record]) -> str:
    """Return a table per kind of device, with the command for each figure, followed by parts not
    measured and why."""
    parts = []
    for device in dict.fromkeys(record.device for record in records):
        mine = [record for record in records if record.device == device]
        shortened = (
            ", shortened by --quick: less precise than the commands"
            if any(record.quick for record in mine)
            else ""
        )
        lines = [f"### {device}{shortened}", "", "| what | figure | command |", "|---|---|---|"]
        lines += [
            f"| {line.what} | {line.figure} | `{line.command}` |"
            for record in mine
            for line in record.figures
        ]
        missing = [
            f"- {record.part} ({record.status}): {record.reason}"
            for record in mine
            if record.status != "done"
        ]
        parts.append("\n".join([*lines, *(["", "Not measured:", "", *missing] if missing else [])]))
    return "\n\n".join(parts)


def main(arguments: list[str]) -> None:
    """Print the figures of `run`; exit status 1 if a part failed."""
    chosen = tyro.cli(EverythingArguments, args=arguments)
    console = make_console(stderr=True)
    records = run(chosen, console)
    if chosen.markdown:
        print(markdown(records))
    else:
        for line in (line for record in records for line in record.figures):
            make_console().print(
                f"{line.what}: {line.figure}   ({line.command})", highlight=False, soft_wrap=True
            )
    if any(record.status == "failed" for record in records):
        sys.exit(1)
