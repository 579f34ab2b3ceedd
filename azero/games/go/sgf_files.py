"""SGF texts in files: plain, compressed, in archives, and in archives inside of archives. Host side
only."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from azero.games.expanding import Budget, TooLargeError
from azero.games.quoting import reason

_ARCHIVES = (".tar.gz", ".tgz", ".zip")
SUFFIXES = (".sgf", ".sgf.gz", *_ARCHIVES)
_DEEPEST = 4
"""Deepest nesting of archives; some archives contain themselves."""
_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""Exceptions of reading damaged files, and (RuntimeError) files that are encrypted or compressed by
an unknown method."""


class Text(NamedTuple):
    """A text that should be SGF, or what is wrong with a member of an archive."""

    name: str
    """the file, and the nested members down to the text"""
    content: bytes
    problem: str = ""


def read_texts(path: Path) -> Iterator[Text]:
    """Yield the texts of a file; a member that cannot be read is yielded with its problem, and
    reading continues.

    Raises:
      ValueError: the file itself cannot be read, has no text in it, or expands to more than
        `azero.games.expanding` allows.
    """
    try:
        yield from _texts(
            path.name, lambda: path.open("rb"), 0, Budget(path.name, path.stat().st_size)
        )
    except _UNREADABLE as error:
        raise ValueError(f"cannot read {path}: {reason(error)}") from error


def _texts(
    name: str, open_file: Callable[[], IO[bytes]], depth: int, budget: Budget
) -> Iterator[Text]:
    kind = name.lower()
    with open_file() as file:
        if not kind.endswith(_ARCHIVES):
            yield Text(
                name, budget.read(budget.gunzip(file) if kind.endswith(".gz") else file, name)
            )
            return
        if depth == _DEEPEST:
            raise ValueError(f"{name} is an archive inside of {depth} others, which is too deep")
        # Seeking back in a compressed stream would read it again, so a nested archive is held in
        # memory.
        whole = io.BytesIO(budget.read(file, name)) if depth else file
        count = 0
        for member, open_member in (
            _of_zip(whole, budget) if kind.endswith(".zip") else _of_tar(whole, budget)
        ):
            budget.member()
            if member.lower().endswith(SUFFIXES):
                count += 1
                yield from _member(f"{name}:{member}", open_member, depth + 1, budget)
        if not count:
            raise ValueError(f"there is no file of game records in {name} ({', '.join(SUFFIXES)})")


def _member(
    name: str, open_file: Callable[[], IO[bytes]], depth: int, budget: Budget
) -> Iterator[Text]:
    try:
        yield from _texts(name, open_file, depth, budget)
    except TooLargeError:
        raise
    except (ValueError, *_UNREADABLE) as error:
        yield Text(name, b"", f"cannot be read: {reason(error)}")


def _of_zip(file: IO[bytes], budget: Budget) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield member.filename, partial(_open_member, archive, member, budget)


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget) -> IO[bytes]:
    return budget.counted(archive.open(member))


def _of_tar(file: IO[bytes], budget: Budget) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    # As a stream, so that headers and skipped members are counted, too. tarfile keeps a list of the
    # members, which is not needed.
    is_packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    with tarfile.open(fileobj=budget.gunzip(file) if is_packed else file, mode="r|") as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                budget.member()
            else:
                yield member.name, partial(_as_it_is, content)


def _as_it_is(content: IO[bytes]) -> IO[bytes]:
    return content
