"""A client's state on disk. Under a defence, the ledger and not the file decides whether a state is valid.

Guarantee: a client never continues from a state that contains a draw, unless the ledger has released that draw. So a
round that was charged and not released may be drawn again for the same charge: nothing of the first draw is left. This
holds for a crash at any moment and for any older or newer file that is restored. Proof: docs/proofs/composition.md,
"The ledger".
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
"""Prefix of the arrays in a client's state that it released once."""

State = tuple[dict[str, NDArray[Any]], dict[str, Any]]


class StateFile:
    """The state file of one client. Without a path nothing is saved; `ledger` is None without a defence."""

    def __init__(self, path: Path | None, client: str, ledger: Ledger | None) -> None:
        self.path, self._client, self._ledger = path, client, ledger

    def begin(self, tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Save a state without a new draw."""
        if self.path:
            save_tensors(self.path, tensors, facts)

    def commit(self, round_number: int, tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Save the state of a charged round: write a temporary file, release it in the ledger, move it to its place."""
        if self.path:
            write_tensors_beside(self.path, tensors, facts)
        if self._ledger:
            self._ledger.release(self._client, round_number, fingerprint(tensors, facts))
        if self.path:
            put_in_place(self.path)

    def load(self) -> State | None:
        """The last valid state, or None."""
        if self.path and self._ledger:
            self._recover(self.path, self._ledger)
        if not self.path or not self.path.exists():
            return None
        tensors, facts = load_state(self.path)
        if self._ledger and is_drawn(tensors, facts) and not self._counts(self._ledger, tensors, facts):
            raise unknown_state(self.path, self._client, facts["round"], self._ledger)
        return tensors, facts

    def _recover(self, path: Path, ledger: Ledger) -> None:
        """Move a temporary file of a crash to its place if it was released and is not older; otherwise remove it."""
        if not beside(path).exists():
            return
        try:
            tensors, facts = load_state(beside(path))
        except RunError:
            beside(path).unlink()  # torn by a crash
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
    """The facts that this module reads; the client reads the rest."""

    round: Count
    served: Count
    steps: Count


_FACTS: TypeAdapter[Any] = TypeAdapter(_Facts)


def load_state(path: Path) -> State:
    """The tensors and the checked facts of a client's file."""
    tensors, facts = load_tensors(path)
    check_shape(_FACTS, facts, str(path), RunError, "restore it from a copy, or start again with --overwrite")
    return tensors, facts


def unknown_state(path: Path, client: str, round_number: int, ledger: Ledger) -> PrivacyError:
    """The error for a state that the ledger did not release."""
    name = ledger.path or "its privacy ledger"
    return PrivacyError(
        f"{path}: {client} has trained up to round {round_number}, but {name} has not released this state. Either "
        "lines are missing and the spent budget is unknown, or the round stopped and was drawn again. Restore the "
        "newest ledger and checkpoints. Never restore an older ledger: it does not contain the later spending. Without "
        "the newest ledger, count the whole budget as spent and start a new run elsewhere"
    )


def is_drawn(tensors: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> bool:
    """Whether this state contains anything drawn from the client's triples."""
    return bool(facts["served"]) or any(name.startswith(RELEASED) for name in tensors)


def saved_release(path: Path, defence: Defence) -> Release | None:
    """The one-time release in this checkpoint of a client, under this defence."""
    return release_in(load_tensors(path)[0], defence)


def release_in(tensors: Mapping[str, NDArray[Any]], defence: Defence) -> Release | None:
    """The one-time release in a client's state."""
    arrays = {name.removeprefix(RELEASED): array for name, array in tensors.items() if name.startswith(RELEASED)}
    return defence.read_release(arrays) if arrays else None
