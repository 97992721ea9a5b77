"""Open the ledgers of runs to count what they have spent together, and refuse those that cannot be counted so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path

from fedkge.accounting.ledger import FILE_NAME, Ledger
from fedkge.accounting.passing_on import ledger_to_pass_on
from fedkge.accounting.statements import digest_of
from fedkge.api.opening import RunLike, directory_of
from fedkge.base.errors import ConfigurationError, PrivacyError, RunError
from fedkge.defences import chosen_defence
from fedkge.runs.account import open_account
from fedkge.runs.directory import RunDirectory, check_has_data
from fedkge.runs.run import Run
from fedkge.store.data_key import key_name
from fedkge.store.durable_files import make_folder, write_atomically


@dataclass(frozen=True, slots=True)
class RunLedger:
    """A run's ledger; `is_run` says whether the rest of its run directory is there too."""

    path: Path
    ledger: Ledger
    is_run: bool


def open_ledgers(runs: Sequence[RunLike]) -> tuple[list[RunLedger], list[str]]:
    """The ledgers of these runs and of those that were overwritten in their directories, and notices about them."""
    found: list[RunLedger] = []
    notices: list[str] = []
    for number, run in enumerate(runs, start=1):
        if isinstance(run, Run) and run.directory is None:
            name = Path(f"run {number} in memory")
            found.append(RunLedger(name, _promised(run.ledger, name, run.ledger is None), True))
            continue
        path = directory_of(run)
        earlier = [one for one in RunDirectory(_folder(path)).earlier_ledgers() if Ledger.read(one).clients]
        if earlier:
            notices.append(f"{path}: counting {len(earlier)} overwritten run{'s' if len(earlier) > 1 else ''} too")
        found += [open_ledger(one) for one in (path, *earlier)]
    notices += [run.ledger.notice for run in found if run.ledger.notice]
    check_same_data(found)
    return found, notices


def open_ledger(path: Path) -> RunLedger:
    """The ledger of a run directory, or a ledger file, checked."""
    folder = _folder(path)
    directory, is_run = RunDirectory(folder), False
    ledger: Ledger | None
    undefended = False
    if folder.is_file():
        ledger = Ledger.read(folder)  # of an overwritten run, or a copy: its checkpoints are not here
    elif directory.exists() or directory.ledger.is_file():
        configuration, provenance = directory.read_configuration() if directory.exists() else (None, {})
        check_has_data(path, provenance)
        undefended = configuration is not None and not chosen_defence(configuration).keeps_ledger
        ledger, is_run = open_account(folder), directory.exists() and path == folder
    else:
        raise RunError(f"{path}: no run here; expected a run directory or a {FILE_NAME}")
    return RunLedger(path, _promised(ledger, path, undefended), is_run)


def _promised(ledger: Ledger | None, path: Path, undefended: bool) -> Ledger:
    if ledger is None and undefended:
        raise PrivacyError(
            f"{path}: this run was trained without a defence, so nothing bounds what it gave away; train with "
            "--defence recommended --epsilon 8"
        )
    if ledger is None or not ledger.clients:
        raise PrivacyError(f"{path}: nobody has promised anything yet; the run ended before its first round")
    return ledger


def _folder(path: Path) -> Path:
    """The run directory, also where its ledger was named; any other file as it is."""
    return path.parent if path.is_file() and path.name == FILE_NAME else path


def check_same_data(runs: Sequence[RunLedger]) -> None:
    """Refuse runs of which it is known that no client holds the same triples; only digests under one key can tell."""
    known = [(run, {digest_of(run.ledger, client) for client in run.ledger.clients}) for run in runs if run.is_run]
    for (one, first), (other, second) in combinations(known, 2):
        keys = {key_name(digest) for digest in first | second}
        if len(keys) == 1 and "" not in keys and not first & second:
            raise ConfigurationError(
                f"{one.path} and {other.path} were trained on different data, or other shards of it, so their clients "
                "do not hold the same triples; account for them one by one. If a triple may be in both, its epsilons "
                "add up"
            )
    if len({run.path.resolve() for run in runs}) < len(runs) or len({id(run.ledger) for run in runs}) < len(runs):
        raise ConfigurationError("a run was named twice; name each once, or its charges would be counted twice")


def pass_on_ledger(run: RunLike, out: str | PathLike[str]) -> Path:
    """Write the ledger of a run without its digests of data, for others to read; a file that is there stays."""
    path = open_ledgers([run])[0][0].ledger.path
    target = Path(out)
    if path is None or target.exists():
        raise ConfigurationError(f"{target}: a file is there already and stays; name another for --pass-on")
    make_folder(target.parent)
    write_atomically(target, ledger_to_pass_on(path.read_bytes(), str(path)))
    return target
