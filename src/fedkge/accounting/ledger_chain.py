"""The chain that links the lines of a ledger to each other, to their run and to the witness of the last line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedkge.accounting.ledger_lines import NONCE, RUN, fresh_token, is_token, sealed
from fedkge.accounting.witness import Head, Witness, witness_folder
from fedkge.base.errors import PrivacyError
from fedkge.store.state_folder import VARIABLE


class Chain:
    """The checksums and random numbers of all lines so far, and the identity of the run, which the first line tells.

    >>> chain = Chain()
    >>> line, record, checksum = chain.next_line({"kind": "torn"})
    >>> chain.take(record, checksum)
    >>> chain.lines, chain.has_mark(chain.mark), len(chain.run)
    (1, True, 32)
    """

    def __init__(self, run: str = "", witness: Witness | None = None) -> None:
        self.run = run
        self._witness = witness
        self._named = False
        self._checksums: list[str] = []
        self._marks: list[str] = []

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._checksums)

    @property
    def mark(self) -> str:
        """The random number of the last line; blank before the first."""
        return self._marks[-1] if self._marks else ""

    def has_mark(self, mark: str) -> bool:
        """Whether a line has this random number."""
        return mark in self._marks

    def next_line(self, record: Mapping[str, Any]) -> tuple[bytes, dict[str, Any], str]:
        """The line for this record, the record with its random number and the run's identity, and its checksum."""
        self.run = self.run or fresh_token()
        named = {} if self._named else {RUN: self.run}
        marked = {**record, **named, NONCE: fresh_token()}
        line, checksum = sealed(marked, self._checksum)
        return line, marked, checksum

    def take(self, record: Mapping[str, Any], checksum: str) -> None:
        """Take in what tells this line from all others; lines of early versions have neither identity nor number."""
        run, mark = record.get(RUN, ""), record.get(NONCE, "")
        if not all(each == "" or is_token(each) for each in (run, mark)):
            raise ValueError("its identity is not what fedkge writes")
        if run and self.run not in ("", run):
            raise ValueError(f"it belongs to another run: expected {self.run[:8]}, got {run[:8]}")
        if run:
            self.run, self._named = run, True
        self._checksums.append(checksum)
        self._marks.append(mark)

    def remember(self) -> None:
        """Show the witness the last line, once there is any."""
        if self._witness and self._named:
            self._witness.remember(self.run, Head(self.lines, self._checksum))

    def recall(self) -> Head | None:
        """The last line of this run that the witness saw. Call this before reading the lines."""
        return self._witness.recall(self.run) if self._witness and is_token(self.run) else None

    def check(self, name: str, seen: Head | None) -> str:
        """Refuse lines that lack what the witness saw last. They may go on after it: a crash comes between the two.

        Returns what a person should know: blank, or that there is no witness.
        """
        if seen is None:
            return _unwitnessed(name) if self.lines else ""
        if self._checksums[seen.lines - 1 : seen.lines] != [seen.checksum]:
            raise PrivacyError(
                f"{name}: expected a ledger that contains the {seen.lines} lines last written on this machine, got "
                f"{self.lines} lines without the last of them. It was cut, or restored from an older copy, or it is a "
                "copy of a run that continued elsewhere. What was spent since is missing, so nothing is released or "
                "counted. Restore the newest ledger and checkpoints; without them, count the whole budget as spent "
                "and start a new run"
            )
        return ""

    @property
    def _checksum(self) -> str:
        return self._checksums[-1] if self._checksums else ""


def _unwitnessed(name: str) -> str:
    return (
        f"{name}: this machine has no witness of this ledger: it was written elsewhere, or the state folder is new. "
        "A rollback to an older copy before now is not noticed here. Lines that are written from now on are witnessed "
        f"in {witness_folder()} ({VARIABLE} names another folder)"
    )
