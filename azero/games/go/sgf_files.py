"""SGF texts in files: plain, compressed, in archives, and in archives inside of archives. Host side only."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

_ARCHIVES = (".tar.gz", ".tgz", ".zip")
SUFFIXES = (".sgf", ".sgf.gz", *_ARCHIVES)
_DEEPEST = 4
"""Archives inside of each other; there are archives that hold themselves."""
_UNREADABLE = (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What reading raises of what is damaged, and (RuntimeError) of what is encrypted or compressed in a way that is not known."""


class Text(NamedTuple):
    """A text that should be SGF, or what is wrong with the member of an archive that should hold one."""

    name: str
    """the file, and the members down to the text"""
    content: bytes
    problem: str = ""


def read_texts(path: Path) -> Iterator[Text]:
    """Yield the texts of a file; a member that cannot be read is yielded with its problem, and the others go on.

    Raises:
      ValueError: the file itself cannot be read, or has no text in it.
    """
    try:
        yield from _texts(path.name, lambda: path.open("rb"), 0)
    except _UNREADABLE as error:
        raise ValueError(f"cannot read {path}: {error or type(error).__name__}") from error


def _texts(name: str, open_file: Callable[[], IO[bytes]], depth: int) -> Iterator[Text]:
    kind = name.lower()
    with open_file() as file:
        if not kind.endswith(_ARCHIVES):
            raw = file.read()
            yield Text(name, gzip.decompress(raw) if kind.endswith(".gz") else raw)
            return
        if depth == _DEEPEST:
            raise ValueError(f"{name} is an archive inside of {depth} others; so deep nothing is read")
        # To go back in what is compressed is to read it anew, so an archive inside of another is held in memory.
        whole = io.BytesIO(file.read()) if depth else file
        count = 0
        for member, open_member in (_of_zip if kind.endswith(".zip") else _of_tar)(whole):
            if member.lower().endswith(SUFFIXES):
                count += 1
                yield from _member(f"{name}:{member}", open_member, depth + 1)
        if not count:
            raise ValueError(f"there is no file of game records in {name} ({', '.join(SUFFIXES)})")


def _member(name: str, open_file: Callable[[], IO[bytes]], depth: int) -> Iterator[Text]:
    try:
        yield from _texts(name, open_file, depth)
    except (ValueError, *_UNREADABLE) as error:
        yield Text(name, b"", f"cannot be read: {error or type(error).__name__}")


def _of_zip(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield member.filename, partial(archive.open, member)


def _of_tar(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, partial(_as_it_is, content)


def _as_it_is(content: IO[bytes]) -> IO[bytes]:
    return content
