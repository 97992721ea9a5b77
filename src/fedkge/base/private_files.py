"""Files and folders that only their owner can read, from the moment they exist.

A run directory holds names, traces of triples, the ledger and keys. The mode is set when a file or folder is created.
If it were changed afterwards, another user of the machine could open the file in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700
UMASK = 0o077
"""For programs that create files themselves: other users get no access, whatever mode the program asks for."""


def new_file(path: Path) -> None:
    """Make an empty file that only its owner can read. It replaces an existing file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     new_file(Path(folder, "a")); oct(Path(folder, "a").stat().st_mode & 0o777)
    '0o600'
    """
    path.unlink(missing_ok=True)
    path.touch(mode=FILE_MODE, exist_ok=False)


def make_private(folder: Path) -> list[Path]:
    """Make a folder and its missing parents, for their owner only. Returns the new ones, outermost first.

    An existing folder keeps its mode.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as outer:
    ...     [oct(made.stat().st_mode & 0o777) for made in make_private(Path(outer, "a", "b"))]
    ['0o700', '0o700']
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not missing:
        folder.mkdir(exist_ok=True)  # a file of that name is an error
    return missing[::-1]


def open_private(path: str | Path, flags: int) -> int:
    """An `opener` for the built-in `open`: it creates files for their owner only."""
    return os.open(path, flags, FILE_MODE)


@contextmanager
def private_umask() -> Iterator[None]:
    """For a library that creates files itself in this process: other users get no access to them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, private_umask():
    ...     Path(folder, "a").touch(); oct(Path(folder, "a").stat().st_mode & 0o777)
    '0o600'
    """
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)
