"""The budget that a run has spent: its ledger, checked against the states and the model of the run.

Guarantee: a ledger without its newest lines is refused, for reading and for continuing, if the run directory or this
machine's witness shows that the lines existed. What is checked and what cannot be noticed: docs/reference/ledger.md,
"After damage, and after a rollback".
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
from fedkge.runs.directory import LAST_ROUNDS, RunDirectory
from fedkge.runs.state_file import is_drawn, load_state, unknown_state
from fedkge.store.durable_files import PARTIAL, START_AGAIN, fingerprint, load_facts
from fedkge.store.result_files import Count, check_shape

TENSORS = ".safetensors"
_LAST_ROUNDS: TypeAdapter[Any] = TypeAdapter(dict[str, Count])


@dataclass(frozen=True, slots=True)
class _Found:
    """A saved client state that contains a draw. `beside`: it is still in its temporary file."""

    path: Path
    client: str
    round: int
    fingerprint: str
    beside: bool


def open_account(run: Path) -> Ledger | None:
    """The ledger of a run directory, for reading; None if no client has made a promise.

    Missing lines are a PrivacyError, because the spent budget is then unknown.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     open_account(Path(folder)) is None
    True
    """
    directory = RunDirectory(run)
    states = list(_states(directory.checkpoints))  # before the ledger: a running client writes its line first
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
    """The ledger of a run directory, for writing, after the same checks; a new ledger if there is none.

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
    """All client states in a checkpoint folder that contain a draw."""
    for path in sorted([*folder.glob(f"*{TENSORS}"), *folder.glob(f"*{TENSORS}{PARTIAL}")]):
        beside = path.name.endswith(PARTIAL)
        try:
            if "served" not in load_facts(path):
                continue  # the server's file, or the best model so far
            tensors, facts = load_state(path)
        except RunError:
            if beside or not path.exists():
                continue  # torn by a crash, or moved to its place just now: it released nothing
            raise
        if is_drawn(tensors, facts):
            name = path.name.removesuffix(PARTIAL).removesuffix(TENSORS)
            yield _Found(path, name, facts["round"], fingerprint(tensors, facts), beside)


def _check_state(ledger: Ledger, state: _Found) -> None:
    """Refuse a state whose draw is not in the ledger as released; a temporary file needs at least a charge.

    A round may save its state twice: when its synthetic graph is drawn, and after training on it. The second time, its
    charge is already released. No client continues from a temporary file that the ledger has not released.
    """
    known = state.client in ledger.clients
    if known and ledger.has_released(state.client, state.fingerprint):
        return
    if known and state.beside and ledger.has_charged(state.client, state.round):
        return
    raise unknown_state(state.path, state.client, state.round, ledger)


def _check_model(ledger: Ledger, directory: RunDirectory) -> None:
    """Refuse a model whose last rounds are not released in the ledger. This also works without checkpoints."""
    if not directory.model.exists():
        return
    last_rounds = load_facts(directory.model).get(LAST_ROUNDS, {})
    check_shape(_LAST_ROUNDS, last_rounds, f"{directory.model}: {LAST_ROUNDS}", RunError, "restore it from a copy")
    for client, number in last_rounds.items():
        entries = ledger.by_round(client) if client in ledger.clients else ()
        if not any(entry.released and entry.round is not None and entry.round >= number for entry in entries):
            raise PrivacyError(
                f"{directory.model}: it contains round {number} of {client}, but {directory.ledger} does not. Lines "
                "are missing, so the spent budget is unknown. Restore the newest ledger; without it, count the whole "
                "budget as spent"
            )
