"""What one client has promised and spent, as the lines of a ledger tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fedkge.accounting.extras import Extra
from fedkge.accounting.promises import Promise
from fedkge.mechanisms.events import Charge

Charges: TypeAlias = tuple[Charge, ...]


@dataclass(frozen=True)
class Entry:
    """One charge: the round it paid for (None for a torn line), and whether that round's upload was let go."""

    round: int | None
    charges: Charges
    released: bool = False


@dataclass(frozen=True)
class Once:
    """What a client released once, before its promise: what was paid, and the released value or its fingerprint."""

    charges: Charges
    value: Any


@dataclass
class ClientEntries:
    """A client's promise and its charges, in the order of the lines."""

    promise: Promise
    provisional: bool = False
    """Something was released once, and the promise that the rest follows from is not made yet."""
    once: dict[str, Once] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    unreleased: dict[int, int] = field(default_factory=dict)
    """Round to the place of its newest entry that was not released."""
    states: set[str] = field(default_factory=set)
    """Fingerprints of the states that were released."""
    extras: list[Extra] = field(default_factory=list)
    """Releases beyond the rounds."""

    def promised(self, promise: Promise) -> ClientEntries:
        """The same with a promise in place of the provisional one."""
        return replace(self, promise=promise, provisional=False)

    def charge(self, round: int, charges: Charges) -> None:  # noqa: A002
        """Take in a charge."""
        if self.provisional:
            raise ValueError(f"{self.promise.client} has not promised")
        self.unreleased[round] = len(self.entries)
        self.entries.append(Entry(round, charges))

    def charged(self, round: int, charges: Charges) -> bool:  # noqa: A002
        """Whether this round is paid for and has not left."""
        place = self.unreleased.get(round)
        return place is not None and self.entries[place].charges == charges

    def released(self, round: int) -> bool:  # noqa: A002
        """Whether this round was paid for and has left, and waits for nothing."""
        return round not in self.unreleased and any(entry.round == round for entry in self.entries)

    def release(self, round: int, state: str) -> None:  # noqa: A002
        """Let all that is paid for go: a later round may have drawn for what an earlier one paid."""
        if round not in self.unreleased and not self.released(round):
            raise ValueError(f"round {round} was never charged")
        for place in self.unreleased.values():
            self.entries[place] = replace(self.entries[place], released=True)
        self.unreleased.clear()
        self.states.add(state)

    def keep_extra(self, name: str, value: Mapping[str, Any]) -> None:
        """Take in what a charged release beyond the rounds drew."""
        place = next((place for place, each in enumerate(self.extras) if each.name == name), None)
        if place is None or self.extras[place].value is not None:
            raise ValueError(f"{name!r} was never charged, or has a value already")
        self.extras[place] = replace(self.extras[place], value={str(key): int(each) for key, each in value.items()})
