"""What a run has spent, for everybody who reads it: the ledger, checked against what was trained with it.

Guarantee: a ledger from which whole lines were cut is refused, to be read and to be continued alike, wherever something
in the run directory, or this machine's witness, shows that they were there. What is looked at, and what cannot be
noticed: docs/reference/ledger.md, "After damage, and after a rollback".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError, RunError
from fedkge.defences import chosen_defence
from fedkge.runs.run import LAST_ROUNDS, RunDirectory
from fedkge.runs.state_file import is_drawn, load_state, unknown_state
from fedkge.store.durable_files import PARTIAL, START_AGAIN, fingerprint, load_facts
from fedkge.store.result_files import Count, check_shape

TENSORS = ".safetensors"
_LAST_ROUNDS: TypeAdapter[Any] = TypeAdapter(dict[str, Count])


@dataclass(frozen=True, slots=True)
class _Found:
    """A client's state for which something was drawn: in its place, or still `beside` it."""

    path: Path
    client: str
    round: int
    fingerprint: str
    beside: bool


def open_account(run: Path) -> Ledger | None:
    """The ledger of a run directory, to look at; None where nobody has promised anything.

    A PrivacyError where lines are missing: what was spent is then unknown.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     open_account(Path(folder)) is None
    True
    """
    directory = RunDirectory(run)
    states = list(_states(directory.checkpoints))  # before the ledger: a run that goes on writes its line first
    configuration, provenance = directory.read_configuration() if directory.exists() else (None, {})
    defended = configuration is not None and chosen_defence(configuration).keeps_ledger
    if not defended and (not directory.ledger.is_file() or directory.ledger.stat().st_size == 0):
        return None
    ledger = Ledger.read(directory.ledger, str(provenance.get("run", "")))
    _check(ledger, directory, states)
    if not ledger.clients and directory.ledger.stat().st_size:
        raise PrivacyError(
            f"{directory.ledger}: expected a promise for each client, got none. If the run was stopped at its first "
            f"line, {START_AGAIN}; otherwise restore the newest ledger"
        )
    return ledger if ledger.clients else None


def continue_account(directory: RunDirectory) -> Ledger:
    """The ledger of a run directory, ready to be written, after the same checks; a new one where there is none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     continue_account(RunDirectory(Path(folder))).clients
    ()
    """
    provenance = directory.read_configuration()[1] if directory.exists() else {}
    ledger = Ledger.open(directory.ledger, str(provenance.get("run", "")))
    _check(ledger, directory, _states(directory.checkpoints))
    return ledger


def _check(ledger: Ledger, directory: RunDirectory, states: Iterable[_Found]) -> None:
    for state in states:
        _check_state(ledger, state)
    _check_model(ledger, directory)


def _states(folder: Path) -> Iterator[_Found]:
    """All clients' states in a folder of checkpoints for which something was drawn."""
    for path in sorted([*folder.glob(f"*{TENSORS}"), *folder.glob(f"*{TENSORS}{PARTIAL}")]):
        beside = path.name.endswith(PARTIAL)
        try:
            if "served" not in load_facts(path):
                continue  # the server's file, or the best model so far
            tensors, facts = load_state(path)
        except RunError:
            if beside or not path.exists():
                continue  # a crash has torn it, or it was put in its place meanwhile: nothing has left with it
            raise
        if is_drawn(tensors, facts):
            name = path.name.removesuffix(PARTIAL).removesuffix(TENSORS)
            yield _Found(path, name, facts["round"], fingerprint(tensors, facts), beside)


def _check_state(ledger: Ledger, state: _Found) -> None:
    """What was drawn is released in the ledger; or, where it is still beside its place, charged at least.

    A round may keep its state twice: a copy when it is drawn, and again when it was trained on. The second time its
    charge is released already. Nobody goes on from a state beside its place that the ledger has not released.
    """
    known = state.client in ledger.clients
    if known and ledger.has_released(state.client, state.fingerprint):
        return
    if known and state.beside and ledger.has_charged(state.client, state.round):
        return
    raise unknown_state(state.path, state.client, state.round, ledger)


def _check_model(ledger: Ledger, directory: RunDirectory) -> None:
    """The last rounds that a model was made from are released, also where checkpoints were removed to save space."""
    if not directory.model.exists():
        return
    last_rounds = load_facts(directory.model).get(LAST_ROUNDS, {})
    check_shape(_LAST_ROUNDS, last_rounds, f"{directory.model}: {LAST_ROUNDS}", RunError, "restore it from a copy")
    for client, number in last_rounds.items():
        entries = ledger.by_round(client) if client in ledger.clients else ()
        if not any(entry.released and entry.round is not None and entry.round >= number for entry in entries):
            raise PrivacyError(
                f"{directory.model}: it was made from round {number} of {client}, of which {directory.ledger} knows "
                "nothing: lines are missing, so what was spent is unknown. Put back the newest ledger; without it, "
                "count the whole budget as spent"
            )
