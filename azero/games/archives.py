"""Texts of recorded games in files: plain, compressed, in archives, and in nested archives. Host
side only."""

import codecs
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from azero.games.expanding import Budget, TooLargeError, unseekable
from azero.games.quoting import reason, shorten

ARCHIVES = (".tar.gz", ".tgz", ".zip")
"""Suffixes of archives."""
_OTHER_ARCHIVES = (".tar", ".tbz2", ".txz", ".7z", ".rar")
_OTHER_COMPRESSED = (".bz2", ".xz", ".zst", ".lzma")
"""Suffixes of what may have records in it, but is not read."""
Split = Callable[[IO[bytes]], Iterator[bytes]]
"""Divides a stream into the texts that are held in memory one at a time."""
_CHUNK = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_EMPTY = re.compile(rb"(?:%b)?\s*\Z" % codecs.BOM_UTF8)
"""A text with nothing in it, or only a byte order mark and blanks."""
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
"""What reading raises for damaged files, and (RuntimeError) for files that are encrypted or
compressed by an unknown method."""


class RecordError(ValueError):
    """A game, or a file of games, that cannot be read."""

    def __init__(self, place: str, problem: object) -> None:
        self.place, self.problem = place, shorten(problem)
        super().__init__(f"{place}: {self.problem}")


def find_game(games: Iterable[Any], skipped: list[RecordError], name: str, number: int) -> Any:
    """Return game `number`, from 1, of the `games` of the file `name`. Games that cannot be read
    count, too; iterating over `games` adds their errors to `skipped`.

    Raises:
      ValueError: there is no such game, or it cannot be read.
    """
    if number < 1:
        raise ValueError(f"the first game of a collection is game 1, not {number}")
    place = f"{name} game {number}"
    for count, game in enumerate(games, start=1):
        # The games of a collection have their numbers in their names; those of an archive are
        # counted as they come.
        if game.name == place or (count == number and not game.name.startswith(f"{name} game ")):
            return game
    problem = next(
        (error for error in skipped if f"{error.place},".startswith(f"{place},")),
        skipped[0] if skipped and number == 1 else None,
    )
    raise problem or ValueError(f"there is no game {number} in {name}")


class Text(NamedTuple):
    """A text of recorded games, or what is wrong with a member of an archive."""

    name: str
    """the path of the file, and the nested members down to the text"""
    content: bytes
    problem: str = ""


def with_compressed(suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the suffixes of files, those of the files compressed, and those of archives."""
    return (*suffixes, *(f"{suffix}.gz" for suffix in suffixes), *ARCHIVES)


def may_have_records(name: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a file of this name may have records: the name ends with one of `suffixes`
    (`with_compressed`), or with the suffix of another kind of compression or archive, which reading
    refuses. Names that begin with ._ do not count: macOS keeps metadata of other files there."""
    if name.rpartition("/")[2].startswith("._"):
        return False
    kind = name.lower()
    stem, dot, last = kind.rpartition(".")
    is_packed = dot + last in _OTHER_COMPRESSED and stem.endswith((*suffixes, ".tar"))
    return is_packed or kind.endswith((*suffixes, *_OTHER_ARCHIVES))


def _refusal(suffixes: tuple[str, ...]) -> str:
    return f"not a file of game records: the suffixes are {', '.join(suffixes)}"


def without_utf16(content: bytes) -> bytes:
    """Return a text in UTF-16, which begins with a byte order mark, in UTF-8; any other as it
    is."""
    if not content.startswith(_UTF16):
        return content
    return content.decode("utf-16", errors="replace").encode()


def read_texts(path: Path, suffixes: tuple[str, ...], split: Split | None = None) -> Iterator[Text]:
    """Yield the texts of a file, those in UTF-16 in UTF-8; a member that cannot be read is yielded
    with its problem, and reading continues.

    Args:
      path: the file.
      suffixes: what the names of files of records end with, compressed ones and archives included
        (`with_compressed`); others in archives are skipped, those packed in another way with a
        problem.
      split: divides a file into texts; None holds it in memory as one.

    Raises:
      ValueError: the file has another suffix, cannot be read, has no text in it, or expands to more
        than `azero.games.expanding` allows.
    """
    if not path.name.lower().endswith(suffixes):
        raise ValueError(f"{path} is {_refusal(suffixes)}")
    reader = _Reader(suffixes, split)
    try:
        budget = Budget(str(path), path.stat().st_size)
        yield from reader.texts(str(path), lambda: path.open("rb"), 0, budget)
    except _UNREADABLE as error:
        raise ValueError(f"cannot read {path}: {reason(error)}") from error


def count_in_texts(path: Path, suffixes: tuple[str, ...], word: bytes) -> int:
    """Return how often a word occurs in the texts of a file, which are read in chunks; 0 if it
    cannot be read."""
    try:
        return sum(text.content.count(word) for text in read_texts(path, suffixes, _in_chunks))
    except (ValueError, MemoryError):
        return 0


def _in_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a stream in chunks that end with a line, if lines are not too long."""
    while chunk := file.read(_CHUNK):
        yield chunk + file.readline(_CHUNK)


class _Reader(NamedTuple):
    suffixes: tuple[str, ...]
    split: Split | None

    def texts(
        self, name: str, open_file: Callable[[], IO[bytes]], depth: int, budget: Budget
    ) -> Iterator[Text]:
        kind = name.lower()
        with open_file() as file:
            if not kind.endswith(ARCHIVES):
                stream = budget.gunzip(file) if kind.endswith(".gz") else file
                if not self.split or stream.peek(2)[:2] in _UTF16:  # type: ignore[attr-defined]
                    content = without_utf16(budget.read(stream, name))
                    parts = self.split(io.BytesIO(content)) if self.split else iter((content,))
                else:
                    parts = self.split(stream)
                for part in parts:
                    yield Text(name, part, "it is empty" if _EMPTY.match(part) else "")
                return
            if depth == _DEEPEST:
                raise ValueError(f"{name} is inside {depth} other archives, too deep; unpack it")
            # Seeking back in a compressed stream would read it again, so a nested archive is held
            # in memory.
            whole = io.BytesIO(budget.read(file, name)) if depth else file
            count = 0
            for member, open_member in (
                _of_zip(whole, budget) if kind.endswith(".zip") else _of_tar(whole, budget)
            ):
                budget.member()
                if may_have_records(member, self.suffixes):
                    count += 1
                    yield from self.member(f"{name}:{member}", open_member, depth + 1, budget)
            if not count:
                raise ValueError(
                    f"there is no file of game records in {name} ({', '.join(self.suffixes)})"
                )

    def member(
        self, name: str, open_file: Callable[[], IO[bytes]], depth: int, budget: Budget
    ) -> Iterator[Text]:
        try:
            if not name.lower().endswith(self.suffixes):
                raise ValueError(_refusal(self.suffixes))
            yield from self.texts(name, open_file, depth, budget)
        except TooLargeError:
            raise
        except (ValueError, *_UNREADABLE) as error:
            yield Text(name, b"", f"cannot be read: {reason(error)}")


def _of_zip(file: IO[bytes], budget: Budget) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield (
                    member.filename,
                    partial(lambda one: budget.counted(archive.open(one)), member),
                )


def _of_tar(file: IO[bytes], budget: Budget) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    # As a stream, so that headers and skipped members are counted, too. The list of members that
    # tarfile keeps is not needed.
    is_packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    with tarfile.open(fileobj=budget.gunzip(file) if is_packed else file, mode="r|") as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                budget.member()
            else:
                yield member.name, partial(unseekable, content)
