"""Atomic files: a container of named arrays with a header and checksums, written under a temporary
name, synced and renamed.

Layout: 8 bytes of magic, uint32 length of the header, 32 bytes SHA-256 of the header, the header as
JSON padded with spaces to a multiple of 64 bytes, the arrays (little endian, C order), each from an
offset that is a multiple of 64. The header has each array's dtype, shape, offset and SHA-256,
padding included, so every changed byte is noticed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from azero.selfplay.trajectory import HostArray

_MAGIC = b"AZEROv1\n"
_PREFIX = struct.Struct("<8sI32s")
_ALIGN = 64  # a cache line; also more than any dtype's own alignment
TEMPORARY_SUFFIX = ".tmp"
"""Suffix of files that are being written, and of those that a killed process leaves."""


UNTOUCHED = "what was saved before is untouched"
_FREE_SPACE = f"free some space and repeat the command; {UNTOUCHED}"
_WRITABLE = "use a directory that can be written to"
_ADVICE = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EROFS: _WRITABLE,
    errno.EACCES: "permission denied for this user; use another directory or file",
    errno.EEXIST: "a file exists where a directory is needed; use another name",
    errno.ENOTDIR: "a file exists where a directory is needed; use another name",
}
"""What the user can do about an operating system error."""


class StorageError(ValueError):
    """A file could not be written; what was there before is untouched."""


class DamagedFileError(ValueError):
    """A file is missing, torn, or not what was written."""


def describe_error(error: Exception) -> str:
    """Return an error as one line; that of an operating system as where, what, and what to do."""
    if not isinstance(error, OSError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.EEXIST and os.path.islink(error.filename or ""):
        leads_to = f"it is a link to {os.path.realpath(error.filename)}, which is not a directory"
        return f"{where}{leads_to}; make it one, or use another name"
    advice = _ADVICE.get(error.errno or 0, "")
    return f"{where}{error.strerror or error}{f'; {advice}' if advice else ''}"


def missing_directories(path: Path) -> list[Path]:
    """Return which of a directory and its parents do not exist, the innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def remove_made(made: Sequence[Path]) -> None:
    """Remove directories that `missing_directories` named before they were made: the first with all
    that is in it, its parents where they are empty."""
    for folder in made[:1]:
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        for folder in made[1:]:
            folder.rmdir()


@contextlib.contextmanager
def replacing(path: Path, temporary: Path) -> Iterator[IO[bytes]]:
    """Open the file `temporary`, which becomes `path` once it is written; after an error, which
    names `path`, it is removed, and an earlier `path` is unchanged."""
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise


def write_atomic(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write `chunks` to `path` as `writing_atomic` does."""
    with writing_atomic(path) as file:
        for chunk in chunks:
            file.write(chunk)


@contextlib.contextmanager
def writing_atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that becomes `path` atomically: after a crash either the old file or the whole
    new one is there.

    Raises:
      StorageError: the file cannot be written (disk full, no permission, ...). The temporary file
        is removed and an earlier `path` is unchanged.
    """
    try:
        with replacing(path, path.with_name(path.name + TEMPORARY_SUFFIX)) as file:
            yield file
        sync_directory(path.parent)
    except OSError as error:
        reason = f"{error.strerror or error}; {UNTOUCHED}"
        raise StorageError(f"cannot write {path}: {reason}") from error


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` (a rename, a new file) survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_arrays(path: Path, arrays: dict[str, HostArray], facts: dict[str, Any]) -> str:
    """Write named arrays and JSON-serialisable `facts` to `path`, atomically. Structured dtypes are
    written with their memory layout.

    Returns:
      The SHA-256 of the header, which covers the whole content.

    Raises:
      StorageError: see `write_atomic`.
    """
    entries: dict[str, Any] = {}
    chunks: list[bytes | memoryview] = []
    offset = 0
    for name, array in arrays.items():
        raw = _raw(array)
        padding = bytes(-raw.nbytes % _ALIGN)
        digest = hashlib.sha256(raw)
        digest.update(padding)
        entries[name] = {
            "dtype": _dtype_to_json(array.dtype),
            "shape": list(array.shape),
            "offset": offset,
            "sha256": digest.hexdigest(),
        }
        chunks += [raw, padding]
        offset += raw.nbytes + len(padding)
    header = json.dumps(
        {"facts": facts, "arrays": entries, "bytes": offset}, sort_keys=True
    ).encode()
    header += b" " * (-(len(header) + _PREFIX.size) % _ALIGN)
    whole = hashlib.sha256(header)
    write_atomic(path, [_PREFIX.pack(_MAGIC, len(header), whole.digest()), header, *chunks])
    return whole.hexdigest()


def read_header(path: Path) -> tuple[dict[str, Any], int, str]:
    """Return the header of a file from `write_arrays`, the offset of its first array, and the
    header's SHA-256.

    Raises:
      DamagedFileError: the file is missing, torn, or its header or size is not what was written;
        the message names the file and what is wrong.
    """
    try:
        with open(path, "rb") as file:
            prefix = file.read(_PREFIX.size)
            if len(prefix) < _PREFIX.size:
                raise DamagedFileError(f"{path} is torn: {len(prefix)} bytes")
            magic, length, digest = _PREFIX.unpack(prefix)
            size = os.fstat(file.fileno()).st_size
            header = file.read(min(length, size))
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from error
    if magic != _MAGIC:
        raise DamagedFileError(f"{path} is damaged: it begins with {magic!r}, not {_MAGIC!r}")
    if hashlib.sha256(header).digest() != digest:
        raise DamagedFileError(f"{path} is damaged: the checksum of its header does not match")
    content = cast(dict[str, Any], json.loads(header))
    start = _PREFIX.size + length
    if size != start + content["bytes"]:
        raise DamagedFileError(
            f"{path} is torn: {size} bytes where {start + content['bytes']} were written"
        )
    return content, start, digest.hex()


def read_arrays(
    path: Path, expected: str | None = None
) -> tuple[dict[str, HostArray], dict[str, Any]]:
    """Return the arrays and facts of a file from `write_arrays`, all checksums verified; `expected`
    is the SHA-256 that it returned, where that is known.

    Raises:
      DamagedFileError: see `read_header`; also when an array is not what was written (it is named)
        or the whole file is not the one expected.
    """
    header, start, digest = read_header(path)
    if expected is not None and digest != expected:
        raise DamagedFileError(
            f"{path} is not the file that was written: checksum {digest[:12]}, expected "
            f"{expected[:12]}"
        )
    try:
        content = np.fromfile(path, np.uint8, offset=start)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from error
    arrays = {}
    for name, entry in header["arrays"].items():
        dtype = _dtype_from_json(entry["dtype"])
        size = dtype.itemsize * int(np.prod(entry["shape"]))
        raw = content[entry["offset"] : entry["offset"] + size + -size % _ALIGN]
        if hashlib.sha256(_raw(raw)).hexdigest() != entry["sha256"]:
            raise DamagedFileError(f"{path} is damaged: the checksum of {name!r} does not match")
        arrays[name] = raw[:size].view(dtype).reshape(entry["shape"])
    return arrays, header["facts"]


def map_array(path: Path, name: str) -> HostArray:
    """Return one array of a file from `write_arrays`, memory-mapped for reading; its checksum is
    not verified.

    Raises:
      DamagedFileError: see `read_header`.
    """
    header, start, _ = read_header(path)
    entry = header["arrays"][name]
    mapped = np.memmap(
        path, _dtype_from_json(entry["dtype"]), "r", start + entry["offset"], tuple(entry["shape"])
    )
    return mapped.view(np.ndarray)  # indexing a plain array is several times faster


def _raw(array: HostArray) -> memoryview:
    """Return the bytes of `array` in C order without a copy where it already is contiguous."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return memoryview(cast(Any, flat.view(np.uint8))) if flat.size else memoryview(b"")


def _dtype_to_json(dtype: np.dtype[Any]) -> Any:
    if dtype.names:
        return dtype.descr
    # bfloat16 and other ml_dtypes are known by name only
    return dtype.str if np.dtype(dtype.str) == dtype else dtype.name


def _dtype_from_json(description: Any) -> np.dtype[Any]:
    if isinstance(description, str):
        return np.dtype(description)
    return np.dtype([(name, kind, *map(tuple, shape)) for name, kind, *shape in description])
