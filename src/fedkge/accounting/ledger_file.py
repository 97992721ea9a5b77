"""The file of a ledger: lines are added at its end and are on the disk when that returns."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from fedkge.base.errors import PrivacyError
from fedkge.store.durable_files import START_AGAIN, make_folder, write_atomically


class LedgerFile:
    """Adds whole lines, and notices another process that does so too. Without a path it keeps nothing.

    Guarantee: `append` returns when the line is synced. A line for which there was no space is taken back.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._size = 0

    @property
    def path(self) -> Path:
        """Where the file is; only ledgers on disk are read."""
        assert self._path is not None  # noqa: S101 (only ledgers on disk are read)
        return self._path

    def make(self) -> None:
        """Make the file and its folder, if there is none."""
        if not self.path.exists():
            make_folder(self.path.parent)
            write_atomically(self.path, b"")

    def read(self) -> bytes:
        """All of it."""
        return self.path.read_bytes()

    def know(self, size: int) -> None:
        """Set the number of bytes in complete lines that the ledger has read."""
        self._size = size

    def is_as_known(self) -> bool:
        """Whether no other process has written to it."""
        return self._path is None or _size_of(self._path) == self._size

    def append(self, line: bytes) -> None:
        """Write a line and sync it."""
        if self._path is None:
            return
        try:
            with self._path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._take_back(len(line))
            raise PrivacyError(
                f"{self._path}: could not be written ({error.strerror or error}), so nothing was released; "
                f"free some space or make the folder writable, then {START_AGAIN}"
            ) from error
        self._size += len(line)

    def replace_end(self, whole: bytes, line: bytes) -> None:
        """Put a line in the place of half a line that a crash left."""
        write_atomically(self.path, whole, line)
        self._size = len(whole) + len(line)

    def sync(self) -> None:
        """Sync lines that a killed process wrote but did not sync, before this process relies on them."""
        try:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise PrivacyError(
                f"{self._path}: could not be synced ({error.strerror or error}); repair the disk"
            ) from error

    def _take_back(self, length: int) -> None:
        """Cut off half a line for which there was no space. Nobody was told that it was written, so nothing was drawn
        or released for it; left there, it would be counted as a round of every client.
        """
        with suppress(OSError):
            if self._size < _size_of(self.path) < self._size + length:
                os.truncate(self.path, self._size)


def _size_of(path: Path) -> int:
    """-1 where it cannot be told."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
