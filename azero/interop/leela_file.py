"""The text files of Leela Zero's networks, line by line.

Line 1 is the version: 1, or 2 for a value head that predicts Black's result (ELF OpenGo). Every
other line is one array of numbers:

    4         the first convolution: weights [F, 18, 3, 3], biases, means and variances of its norm
    8 x R     a residual block: two convolutions [F, F, 3, 3], four lines each
    6         policy: convolution [P, F], its three lines, a linear layer [N + 1, P N], its biases
    8         value: convolution [V, F], its three lines, linear layers [U, V N] and [1, U], each
              followed by its biases

The file may be compressed by gzip. Source: Leela Zero 0.17, src/Network.cpp, load_v1_network.
"""

import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from azero.data.files import write_atomic

NUM_PLANES = 18
"""Eight positions of each side, and the colour to move in two planes (Network.h,
INPUT_CHANNELS)."""
_GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file (RFC 1952)."""
_TAIL = 14
"""Lines of the heads."""
_WORD_BYTES = 32
"""No number takes more bytes, the blank after it included: one of float64 has up to 24."""
_COMMON_FILTERS = 256
"""The filters of the largest networks that Leela Zero published."""
_MOST_LINES = 8 * 1024
"""A thousand blocks; the largest networks have 40."""


class Layout(NamedTuple):
    """The sizes of a network."""

    version: int
    blocks: int
    """Residual blocks."""
    filters: int
    size: int
    """Points per side of the board."""
    policy_filters: int = 2
    value_filters: int = 1
    value_hidden: int = 256

    def counts(self) -> list[int]:
        """Return how many numbers each line after the first has."""
        points, filters = self.size**2, self.filters
        policy, value = self.policy_filters, self.value_filters
        tower = [NUM_PLANES, *[filters] * (2 * self.blocks)]
        return [
            *(n for inputs in tower for n in (9 * filters * inputs, filters, filters, filters)),
            *(policy * filters, policy, policy, policy),
            *((points + 1) * policy * points, points + 1),
            *(value * filters, value, value, value),
            *(self.value_hidden * value * points, self.value_hidden, self.value_hidden, 1),
        ]

    def variance_lines(self) -> set[int]:
        """Return the numbers of the lines with variances."""
        last_of_tower = 5 + 8 * self.blocks
        return {*range(5, last_of_tower + 1, 4), last_of_tower + 4, last_of_tower + 10}


def read_layout(path: Path) -> Layout:
    """Return the sizes of the network in a file; its numbers are counted and not read.

    Raises:
      ValueError: the file is not one of Leela Zero, or it is damaged; the line is named.
      OSError: it cannot be opened.
    """
    lines = _lines(path)
    version = next(lines, b"").strip()
    if version not in (b"1", b"2"):
        shown = version[:20].decode("ascii", "replace")
        raise ValueError(
            f"{path} is not a network of Leela Zero: its first line is 1 or 2, not {shown!r}"
        )
    counts = [len(line.split()) for line in lines]
    blocks, rest = divmod(len(counts) - 4 - _TAIL, 8)
    if blocks < 0 or rest:
        raise ValueError(
            f"{path} has {len(counts) + 1} lines; a network of Leela Zero has 19 and 8 for each "
            "residual block"
        )
    tail = counts[-_TAIL:]
    layout = Layout(
        int(version),
        blocks,
        counts[0] // (9 * NUM_PLANES),
        math.isqrt(tail[5]),
        tail[1],
        tail[7],
        tail[11],
    )
    for number, (found, wanted) in enumerate(zip(counts, layout.counts(), strict=True), start=2):
        if found != wanted:
            raise ValueError(f"{path}: line {number} has {found} numbers, not {wanted}")
    return layout


def read_numbers(path: Path, layout: Layout) -> Iterator[np.ndarray]:
    """Yield the arrays float32[n] of a file with this layout, one a line.

    Raises:
      ValueError: a line holds something other than finite numbers, or not as many as the layout
        says, or a variance is negative.
    """
    lines, variance_lines = _lines(path), layout.variance_lines()
    next(lines, None)
    for number, wanted in enumerate(layout.counts(), start=2):
        words = next(lines, b"")
        try:
            array = np.loadtxt(io.BytesIO(words), np.float32, comments=None, ndmin=1, max_rows=1)
        except ValueError:
            raise ValueError(f"{path}: line {number} holds something other than numbers") from None
        if array.size != wanted:
            raise ValueError(f"{path}: line {number} has {array.size} numbers, not {wanted}")
        if not np.isfinite(array).all():
            first = int(np.flatnonzero(~np.isfinite(array))[0])
            raise ValueError(f"{path}: number {first + 1} of line {number} is {array[first]}")
        if number in variance_lines and (array < 0).any():
            raise ValueError(f"{path}: line {number} has a negative variance")
        yield array


def write_numbers(path: Path, version: int, arrays: Iterable[np.ndarray]) -> None:
    """Write a file, compressed where its name ends in .gz; float32 numbers keep their value.

    Raises:
      StorageError: it cannot be written.
    """
    lines = _text(version, arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, _compressed(lines) if path.suffix == ".gz" else lines)


def _text(version: int, arrays: Iterable[np.ndarray]) -> Iterator[bytes]:
    yield f"{version}\n".encode()
    for array in arrays:  # 9 digits identify a float32 (IEEE 754-2019, 5.12.2)
        yield (" ".join([f"{number:.9g}" for number in array.ravel().tolist()]) + "\n").encode()


def _compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)  # a gzip header
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; how long one may be follows from those before it."""
    counts: list[int] = []
    with open(path, "rb") as file:
        is_compressed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        text = gzip.GzipFile(fileobj=file) if is_compressed else file
        for number in range(1, _MOST_LINES + 2):
            most = _most_bytes(counts)
            try:
                line = text.readline(most + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"{path}: line {number} cannot be decompressed: {error}") from None
            if not line:
                return
            if len(line) > most or number > _MOST_LINES:
                problem = "is too long" if len(line) > most else "is one line too many"
                raise ValueError(f"{path}: line {number} {problem} for a network of Leela Zero")
            if number <= 3:
                counts.append(len(line.split()))
            yield line


def _most_bytes(counts: Sequence[int]) -> int:
    """Return how long the line after lines with `counts` numbers may be."""
    if not counts:
        return _WORD_BYTES
    filters = counts[2] if len(counts) == 3 and counts[1] == 9 * NUM_PLANES * counts[2] else 0
    return 9 * max(filters, _COMMON_FILTERS) ** 2 * _WORD_BYTES
