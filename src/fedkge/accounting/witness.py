"""A witness: what a ledger looked like when it was last written, kept outside the run directory.

A backup that brings back ledger and checkpoints together brings back a run that fits, and would spend its budget
twice. The witness is not in that backup: it lies in the user's state folder, one file per ledger.

Guarantees: `remember` returns when the head is on the disk. The ledger calls it after each of its own lines is on the
disk, and before anything that the line pays for leaves. So a ledger that was never rolled back always contains the
witnessed head: after a crash the witness may be one line behind, and never ahead. Proof: docs/proofs/composition.md,
"The ledger".
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from fedkge.base.errors import PrivacyError
from fedkge.base.private_files import make_private, open_private
from fedkge.store.durable_files import START_AGAIN, sync_folder
from fedkge.store.state_folder import VARIABLE, state_folder

_HEAD = re.compile(rb"([0-9]+) ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a ledger: how many lines it has, and the checksum of the last, which depends on all of them."""

    lines: int
    checksum: str


def witness_folder() -> Path:
    """Where this user's witnesses are.

    >>> witness_folder().parent == state_folder()
    True
    """
    return state_folder() / "ledgers"


class Witness:
    """The witness files in one folder; only their owner can read them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     witness = Witness(Path(folder, "ledgers"))
    ...     before = witness.recall("ab" * 16)
    ...     witness.remember("ab" * 16, Head(1, "0" * 64))
    ...     before, witness.recall("ab" * 16).lines
    (None, 1)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, run: str) -> Path:
        """The witness file of a run."""
        return self._folder / f"{run}.heads"

    def recall(self, run: str) -> Head | None:
        """The last head that was remembered, or None where this machine has no witness of the run.

        A crash can tear the last line only; the one before is then the last that counts.
        """
        path = self.path(run)
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unusable(path, "read", error) from error
        if b"\n" not in content:
            return None  # a crash has torn the very first line
        found = [match for line in content.split(b"\n") if (match := _HEAD.fullmatch(line))]
        if not found:
            raise PrivacyError(
                f"{path}: expected the heads of a privacy ledger, got a damaged file; restore it. Without it nobody "
                "knows whether the ledger was rolled back: count the whole budget as spent"
            )
        return Head(int(found[-1][1]), found[-1][2].decode())

    def remember(self, run: str, head: Head) -> None:
        """Add the head to the file of its run, and wait until it is on the disk."""
        path = self.path(run)
        try:
            made = make_private(self._folder)
            new = not path.exists()
            with open(path, "ab+", opener=open_private) as file:
                file.write(_after_a_tear(file.fileno()) + f"{head.lines} {head.checksum}\n".encode())
                file.flush()
                os.fsync(file.fileno())
            for folder in (*(each.parent for each in made), *([self._folder] if new else [])):
                sync_folder(folder)
        except OSError as error:
            raise self._unusable(path, "written", error) from error

    @staticmethod
    def _unusable(path: Path, how: str, error: OSError) -> PrivacyError:
        return PrivacyError(
            f"{path}: the witness of the privacy ledger could not be {how} ({error.strerror or error}), so nothing was "
            f"released; make its folder writable, or set {VARIABLE} to a lasting folder that is, then "
            f"{START_AGAIN}"
        )


def _after_a_tear(descriptor: int) -> bytes:
    """A line end, where a crash has left half a line."""
    size = os.fstat(descriptor).st_size
    return b"" if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n" else b"\n"
