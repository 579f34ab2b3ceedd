"""Reading compressed files within bounds, against decompression bombs. Host side only."""

import gzip
import io
from typing import IO

LARGEST_TEXT = 256 << 20
"""Bytes of a text, or of a nested archive, both of which are held in memory; one file with all
games of the Fox server in a year is smaller."""
LARGEST_RATIO = 200
"""Bytes out for a byte in. Collections of games compress to between a third and a twentieth; gzip's
most is 1,032 (zlib's technical details)."""
FREE_BYTES = 32 << 20
"""Bytes to which any file may expand, whatever its ratio, such as a collection of one game many
times."""
MOST_BYTES = 64 << 30
"""Bytes to which one file may expand in all: some hours of reading."""
MOST_MEMBERS = 1_000_000
"""Members of one archive, those of nested archives included; the largest known collection, GoGoD,
has 125,000 games."""
_CHUNK = 1 << 20


class TooLargeError(ValueError):
    """A file expands to more than is allowed; the message names the file and the limit."""


class Budget:
    """How much of its limits the expansion of one file has used."""

    def __init__(self, name: str, size: int) -> None:
        """Take the name of the file, for messages, and its size in bytes."""
        self._name = name
        self._most = min(MOST_BYTES, max(FREE_BYTES, LARGEST_RATIO * size))
        self._bytes = self._members = 0

    def member(self) -> None:
        """Count a member of an archive.

        Raises:
          TooLargeError: there are too many.
        """
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise TooLargeError(f"{self._name} has more than {MOST_MEMBERS:,} members; divide it")

    def spend(self, count: int) -> None:
        """Count expanded bytes.

        Raises:
          TooLargeError: there are too many.
        """
        self._bytes += count
        if self._bytes > self._most:
            raise TooLargeError(
                f"{self._name} expands to more than {self._most >> 20:,} MiB (the limits are "
                f"{LARGEST_RATIO} times its size and {MOST_BYTES >> 30} GiB); "
                "expand it yourself if you trust it"
            )

    def read(self, file: IO[bytes], name: str) -> bytes:
        """Return all of `file`, which is called `name`.

        Raises:
          TooLargeError: it is too much.
        """
        chunks: list[bytes] = []
        length = 0
        while chunk := file.read(_CHUNK):
            length += len(chunk)
            if length > LARGEST_TEXT:
                raise TooLargeError(
                    f"{name} has more than {LARGEST_TEXT >> 20} MiB, the most that is held in "
                    "memory; divide it"
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def gunzip(self, file: IO[bytes]) -> IO[bytes]:
        """Return the decompressed stream of the gzip stream `file`, with its bytes counted."""
        return self.counted(gzip.GzipFile(fileobj=file))  # type: ignore[arg-type]

    def counted(self, file: IO[bytes]) -> IO[bytes]:
        """Return the decompressing stream `file`, with its bytes counted."""
        return io.BufferedReader(_Counted(file, self))


def unseekable(file: IO[bytes]) -> IO[bytes]:
    """Return the stream `file` as one that cannot seek; a member of a tar archive that is read as a
    stream fails when it is asked whether it can."""
    return io.BufferedReader(_Unseekable(file))


class _Unseekable(io.RawIOBase):
    """A stream that is only read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        chunk = self._file.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


class _Counted(_Unseekable):
    """A stream whose bytes are counted as they are read."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        super().__init__(file)
        self._budget = budget

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        length = super().readinto(buffer)
        self._budget.spend(length)
        return length
