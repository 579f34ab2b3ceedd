"""Append-only files of JSON lines that survive a crash: an incomplete last line is ignored by
readers, and removed before the next row is written."""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from azero.data.files import replacing

Row = dict[str, Any]


def to_plain(value: Any) -> Any:
    """Return `value` as plain JSON values: arrays as lists, NumPy and JAX scalars as numbers,
    infinities and NaN as None."""
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "__array__"):
        return to_plain(np.asarray(value).tolist())
    return str(value)


def read_rows(path: Path, key: str | None = None) -> list[Row]:
    """Return the rows of a file of JSON lines, oldest first; none if there is no such file. An
    incomplete last line is skipped.

    Raises:
      ValueError: a line before the last is not a JSON object, or has no `key`; the file and the
        line number are named.
    """
    rows: list[Row] = []
    for number, line, row in _lines(path):
        if row is None or (key is not None and key not in row):
            problem = "is not a JSON object" if row is None else f"has no {key!r}"
            begins = line[:60].decode("utf-8", errors="replace")
            raise ValueError(
                f"{path}, line {number} {problem}: {begins!r}; remove that line to read the others"
            )
        rows.append(row)
    return rows


def _lines(path: Path) -> Iterator[tuple[int, bytes, Row | None]]:
    """Yield the number, the text and the row of each complete line that is not blank; None where it
    is not a JSON object."""
    if not path.exists():
        return
    # after the last newline there is nothing, or an incomplete line
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield number, line, row if isinstance(row, dict) else None


def keep_rows(path: Path, wanted: Callable[[Row], bool]) -> int:
    """Rewrite a file of JSON lines with the wanted rows only, atomically; return how many lines
    were dropped because they are not JSON objects."""
    rows = [row for _, _, row in _lines(path)]
    kept = [row for row in rows if row is not None and wanted(row)]
    if len(kept) < len(rows):
        replace_text(path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in kept))
    return rows.count(None)


def replace_text(path: Path, text: str) -> None:
    """Write a text file atomically: at any moment either the old or the new one is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with replacing(path, temporary) as file:
        file.write(text.encode())


class RowFile(contextlib.AbstractContextManager["RowFile"]):
    """An append-only file of JSON lines; every row is passed to the operating system before
    `append` returns."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending, and cut off an incomplete last line."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab", buffering=0)
        if size := self._file.tell():
            complete = path.read_bytes().rfind(b"\n") + 1
            if complete < size:
                self._file.truncate(complete)

    def append(self, row: Row) -> None:
        """Write one row.

        Raises:
          OSError: the row cannot be written; the file is as it was.
        """
        line = memoryview(json.dumps(to_plain(row), allow_nan=False).encode() + b"\n")
        size = os.fstat(self._file.fileno()).st_size
        try:
            while line:
                line = line[self._file.write(line) :]  # a disk that fills up may accept a part
        except OSError as error:
            error.filename = str(self._path)
            with contextlib.suppress(OSError):
                self._file.truncate(size)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __exit__(self, *error: object) -> None:
        self.close()
