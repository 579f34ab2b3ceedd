"""A disk that a process loses: Python's file operations can be cut off at any one of them, and a
power cut takes what was not synced."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Crash(BaseException):
    """The process has been killed: no operation on the disk happens any more."""


class Disk:
    """The directory that is watched, and whether the process that uses it still lives.

    What a power cut takes is the worst of what POSIX allows but one thing: contents of files that
    were not synced, new names in directories that were not synced; deletions and replacements stay.
    """

    def __init__(self) -> None:
        self._root = ""
        self._left: int | None = None
        self._lock = threading.Lock()
        self._contents: dict[int, tuple[int, int]] = {}
        self._names: dict[int, set[tuple[str, int]]] = {}
        self._fsync = os.fsync
        self.is_dead = False
        sys.addaudithook(self._audit)

    def watch(self, root: Path) -> None:
        """Begin anew with an empty directory, which is there."""
        self._root = str(root.resolve())
        self._left, self.is_dead = None, False
        self._contents.clear()
        self._names.clear()
        os.fsync = self._remember  # type: ignore[assignment]

    def release(self) -> None:
        """Watch nothing."""
        self._root = ""
        os.fsync = self._fsync

    def kill_after(self, operations: int) -> None:
        """Let the process die at its so many-th operation from now on, from 0."""
        self._left = operations

    def start(self, power_cut: bool) -> None:
        """Let another process begin, after a power cut or not."""
        self._left, self.is_dead = None, False
        if power_cut:
            root, self._root = self._root, ""
            self._lose(Path(root))
            self._root = root

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._root or event not in _EVENTS:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
            return
        path = arguments[0]
        if isinstance(path, bytes | str | os.PathLike) and os.path.abspath(
            os.fsdecode(path)
        ).startswith(self._root):
            with self._lock:
                if self._left is not None:
                    self.is_dead = self.is_dead or self._left <= 0
                    self._left -= 1
            if self.is_dead:
                raise Crash

    def _remember(self, descriptor: int) -> None:
        if self.is_dead:
            raise Crash
        self._fsync(descriptor)
        status = os.fstat(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            self._names[status.st_ino] = {(entry.name, entry.inode()) for entry in os.scandir(path)}
        else:
            self._contents[status.st_ino] = (status.st_size, status.st_mtime_ns)

    def _lose(self, directory: Path) -> None:
        durable = self._names.get(directory.stat().st_ino, set())
        kept = {name for name, _ in durable}
        for entry in list(os.scandir(directory)):
            if (entry.name, entry.inode()) not in durable and entry.name not in kept:
                shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
            elif entry.is_dir():
                self._lose(Path(entry.path))
            else:
                status = entry.stat()
                synced = self._contents.get(status.st_ino)
                if synced is None:
                    os.truncate(entry.path, 0)
                elif synced != (status.st_size, status.st_mtime_ns):
                    os.truncate(entry.path, min(synced[0], status.st_size))
