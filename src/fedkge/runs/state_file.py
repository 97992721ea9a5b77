"""A client's state on the disk. Under a defence the ledger's line, not the file, decides whether a state counts.

Guarantee: what a round drew is in no state that a client goes on from, unless the ledger has released it. A round that
was charged and not released may therefore be drawn again for what it paid: nothing of the first draw is left, whatever
was killed, and whichever older or newer file is put back. Proof: docs/proofs/composition.md, "The ledger".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError, RunError
from fedkge.defences.defence import Defence
from fedkge.defences.release import Release
from fedkge.store.durable_files import (
    beside,
    fingerprint,
    load_tensors,
    put_in_place,
    save_tensors,
    write_tensors_beside,
)
from fedkge.store.result_files import Count, check_shape

RELEASED = "counts/"
"""Where the arrays of what a client released once are in its state."""

State = tuple[dict[str, NDArray[Any]], dict[str, Any]]


class StateFile:
    """Where one client keeps its state, if it has a path; `ledger` is None without a defence."""

    def __init__(self, path: Path | None, client: str, ledger: Ledger | None) -> None:
        self.path, self._client, self._ledger = path, client, ledger

    def begin(self, tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Keep a state for which nothing new was drawn."""
        if self.path:
            save_tensors(self.path, tensors, facts)

    def commit(self, round_number: int, tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Keep the state of a round that is charged: written beside, released by the ledger, then put in its place."""
        if self.path:
            write_tensors_beside(self.path, tensors, facts)
        if self._ledger:
            self._ledger.release(self._client, round_number, fingerprint(tensors, facts))
        if self.path:
            put_in_place(self.path)

    def load(self) -> State | None:
        """The last state that counts; None where there is none."""
        if self.path and self._ledger:
            self._recover(self.path, self._ledger)
        if not self.path or not self.path.exists():
            return None
        tensors, facts = load_state(self.path)
        if self._ledger and is_drawn(tensors, facts) and not self._counts(self._ledger, tensors, facts):
            raise unknown_state(self.path, self._client, facts["round"], self._ledger)
        return tensors, facts

    def _recover(self, path: Path, ledger: Ledger) -> None:
        """Put in its place what was released before a crash; remove what was not, and what is older."""
        if not beside(path).exists():
            return
        try:
            tensors, facts = load_state(beside(path))
        except RunError:
            beside(path).unlink()  # a crash has torn it
            return
        older = path.exists() and facts["served"] < load_state(path)[1]["served"]
        if self._counts(ledger, tensors, facts) and not older:
            put_in_place(path)
        else:
            beside(path).unlink()

    def _counts(self, ledger: Ledger, tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> bool:
        return ledger.has_released(self._client, fingerprint(tensors, facts))


@with_config(ConfigDict(extra="allow"))
class _Facts(TypedDict):
    """What this module reads of the facts; the client reads the rest."""

    round: Count
    served: Count
    steps: Count


_FACTS: TypeAdapter[Any] = TypeAdapter(_Facts)


def load_state(path: Path) -> State:
    """Tensors and facts of a client's file, the facts checked."""
    tensors, facts = load_tensors(path)
    check_shape(_FACTS, facts, str(path), RunError, "restore it from a copy, or start again with --overwrite")
    return tensors, facts


def unknown_state(path: Path, client: str, round_number: int, ledger: Ledger) -> PrivacyError:
    """The error for a state that the ledger did not release."""
    name = ledger.path or "its privacy ledger"
    return PrivacyError(
        f"{path}: {client} has trained up to round {round_number}, and of this state {name} knows nothing: lines "
        "are missing, so what was spent is unknown, or the round was broken off and drawn again. Put back the newest "
        "ledger and checkpoints. Never put back an older ledger: it forgets what was spent since. Without the newest, "
        "count the whole budget as spent and start a new run elsewhere"
    )


def is_drawn(tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> bool:
    """Whether anything of a client's triples was drawn for this state."""
    return bool(facts["served"]) or any(name.startswith(RELEASED) for name in tensors)


def saved_release(path: Path, defence: Defence) -> Release | None:
    """What the client of this checkpoint has released once, under this defence."""
    return release_in(load_tensors(path)[0], defence)


def release_in(tensors: Mapping[str, NDArray[Any]], defence: Defence) -> Release | None:
    """What was released once, of a client's state."""
    arrays = {name.removeprefix(RELEASED): array for name, array in tensors.items() if name.startswith(RELEASED)}
    return defence.read_release(arrays) if arrays else None
