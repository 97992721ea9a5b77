"""What runs have spent: each ledger, all of them together, and a triple that several clients hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.base.errors import ConfigurationError, PrivacyError, RunError
from fedkge.base.numbers import finite
from fedkge.cli.account import NOT_PRIVATE, POINTS, label, shown
from fedkge.cli.account_copy import worth_table
from fedkge.cli.tables import grid, print_json, say, stderr, stdout

if TYPE_CHECKING:
    from fedkge.accounting import Accountant, Ledger
    from fedkge.accounting.curves import Curve
    from fedkge.accounting.ledger import Charges
    from fedkge.accounting.posterior import GuessWorth
    from fedkge.accounting.statements import Total


@dataclass(frozen=True)
class _Opened:
    """A run's ledger; `is_run` says whether the rest of its run directory is there too."""

    path: Path
    ledger: Ledger
    is_run: bool


def account_runs(
    paths: Sequence[Path],
    delta: float | None,
    allow_large_delta: bool,
    accountant: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print what the clients of these runs have spent."""
    from fedkge.accounting import make_accountant  # noqa: PLC0415
    from fedkge.accounting.deltas import large_epsilon  # noqa: PLC0415
    from fedkge.accounting.statements import spending_over_runs  # noqa: PLC0415

    runs = [_open(path) for path in _with_overwritten(paths)]
    _check_same_data(runs)
    given, name = _delta(runs, delta, allow_large_delta), accountant or _accountant(runs)
    counting = make_accountant(name)
    with stderr().status("accounting"):
        each = [_run_record(run) for run in runs]
        clients = spending_over_runs([run.ledger for run in runs], given, counting)
        costs = {client: total.spending.epsilon(given, counting) for client, total in clients.items()}
        worth = _worth(clients, costs, given, counting)
        owners = _by_owners(runs, clients, given, counting)
        curves = _curves(runs, clients, given, counting)
        if plot is not None:
            _plot(curves, runs, plot)
    reasons = _reasons(each)
    record = {
        "runs": each,
        "delta": given,
        "accountant": name,
        "sound": counting.sound and not reasons,
        "private": not reasons,
        "not_private_because": reasons,
        "together": {client: finite(cost) for client, cost in costs.items()},
        "guess": {client: each.record() for client, each in worth.items()},
        "counted_by_costliest": _unsure(runs, clients),
        "by_owners": {str(count): finite(cost) for count, cost in owners.items()},
        "epsilon_over_rounds": {
            client: [{"round": number, "epsilon": finite(cost)} for number, cost in curve]
            for client, curve in curves.items()
        },
    }
    if as_json:
        print_json(record)
    else:
        _show(runs, record, clients, owners, curves)
        if worth:
            stdout().print(worth_table(worth))
    if warning := large_epsilon(max((cost for cost in costs.values() if math.isfinite(cost)), default=None)):
        say(f"WARNING: {warning}")
    if plot is not None:
        say(f"Drawn: {plot}")


def write_ledger_to_pass_on(paths: Sequence[Path], out: Path) -> None:
    """Write the ledger of one run without its digests of data; a file that is there stays."""
    from fedkge.accounting.passing_on import ledger_to_pass_on  # noqa: PLC0415
    from fedkge.store.durable_files import make_folder, write_atomically  # noqa: PLC0415

    if len(paths) != 1:
        raise ConfigurationError(f"--pass-on writes the ledger of one run, got {len(paths)} runs")
    path = _open(paths[0]).ledger.path
    if path is None or out.exists():
        raise ConfigurationError(f"{out}: a file is there already and stays; name another for --pass-on")
    make_folder(out.parent)
    write_atomically(out, ledger_to_pass_on(path.read_bytes(), str(path)))
    say(f"Written for others to read: {out}")


def _with_overwritten(paths: Sequence[Path]) -> list[Path]:
    """The runs, and the ledgers of runs that were overwritten in their directories."""
    from fedkge.accounting.ledger import Ledger  # noqa: PLC0415
    from fedkge.runs.run import RunDirectory  # noqa: PLC0415 (heavy)

    found: list[Path] = []
    for path in paths:
        earlier = [one for one in RunDirectory(_folder(path)).earlier_ledgers() if Ledger.read(one).clients]
        if earlier:
            say(f"{path}: counting {len(earlier)} overwritten run{'s' if len(earlier) > 1 else ''} too")
        found += [path, *earlier]
    return found


def _folder(path: Path) -> Path:
    """The run directory, also where its ledger was named; any other file as it is."""
    from fedkge.accounting.ledger import FILE_NAME  # noqa: PLC0415

    return path.parent if path.is_file() and path.name == FILE_NAME else path


def _open(path: Path) -> _Opened:
    from fedkge.accounting.ledger import FILE_NAME, Ledger  # noqa: PLC0415
    from fedkge.defences import chosen_defence  # noqa: PLC0415 (heavy)
    from fedkge.runs.account import open_account  # noqa: PLC0415 (heavy)
    from fedkge.runs.run import RunDirectory, check_has_data  # noqa: PLC0415 (heavy)

    folder = _folder(path)
    directory, is_run = RunDirectory(folder), False
    ledger: Ledger | None
    if folder.is_file():
        ledger = Ledger.read(folder)  # of an overwritten run, or a copy: its checkpoints are not here
    elif directory.exists() or directory.ledger.is_file():
        provenance = directory.read_configuration()[1] if directory.exists() else {}
        check_has_data(path, provenance)
        ledger, is_run = open_account(folder), directory.exists() and path == folder
    else:
        raise RunError(f"{path}: no run here; expected a run directory or a {FILE_NAME}")
    if ledger is None and directory.exists() and not chosen_defence(directory.read_configuration()[0]).keeps_ledger:
        raise PrivacyError(
            f"{path}: this run was trained without a defence, so nothing bounds what it gave away; train with "
            "--defence recommended --epsilon 8"
        )
    if ledger is None or not ledger.clients:
        raise PrivacyError(f"{path}: nobody has promised anything yet; the run ended before its first round")
    if ledger.notice:
        say(ledger.notice)
    return _Opened(path, ledger, is_run)


def _check_same_data(runs: Sequence[_Opened]) -> None:
    """Refuse runs of which it is known that no client holds the same triples; only digests under one key can tell."""
    from fedkge.accounting.statements import digest_of  # noqa: PLC0415
    from fedkge.store.data_key import key_name  # noqa: PLC0415

    known = [(run, {digest_of(run.ledger, client) for client in run.ledger.clients}) for run in runs if run.is_run]
    for (one, first), (other, second) in combinations(known, 2):
        keys = {key_name(digest) for digest in first | second}
        if len(keys) == 1 and "" not in keys and not first & second:
            raise ConfigurationError(
                f"{one.path} and {other.path} were trained on different data, or other shards of it, so their clients "
                "do not hold the same triples; account for them one by one. If a triple may be in both, its epsilons "
                "add up"
            )
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise ConfigurationError("a run was named twice; name each once, or its charges would be counted twice")


def _delta(runs: Sequence[_Opened], given: float | None, allow_large: bool) -> float:
    """The given delta, if it is small enough for the largest client; else the smallest that a client promised."""
    from fedkge.accounting.deltas import chosen_delta  # noqa: PLC0415

    promises = [promise for run in runs for promise in run.ledger.promises.values()]
    if given is not None:
        plans = [promise.facts.plan for promise in promises]
        return chosen_delta(given, max((plan.triples for plan in plans if plan), default=1), allow_large)
    return min(promise.delta for promise in promises)


def _accountant(runs: Sequence[_Opened]) -> str:
    names = {promise.accountant for run in runs for promise in run.ledger.promises.values()}
    return names.pop() if len(names) == 1 else "pld"


def _run_record(run: _Opened) -> dict[str, Any]:
    from fedkge.report.promise_words import NEIGHBOURS, why_not_private  # noqa: PLC0415

    clients = {}
    for client, promise in run.ledger.promises.items():
        entries, spent = run.ledger.by_round(client), run.ledger.spent(client)
        promised = run.ledger.promised(client)
        clients[client] = {
            "budget": promised,
            "spent": finite(spent),
            "left": None if promised is None else max(0.0, promised - spent),
            "delta": promise.delta,
            "accountant": promise.accountant,
            "neighbours": NEIGHBOURS[promise.neighbours],
            "rounds_charged": len(entries),
            "rounds_released": sum(entry.released for entry in entries),
            "torn_lines": sum(entry.round is None for entry in entries),
            "private": not why_not_private(promise),
            "not_private_because": why_not_private(promise),
        }
    return {"run": str(run.path), "clients": clients}


def _reasons(records: Sequence[dict[str, Any]]) -> list[str]:
    """Why the runs are not private, each reason once."""
    clients = [facts for each in records for facts in each["clients"].values()]
    return list(dict.fromkeys(facts["not_private_because"] for facts in clients if not facts["private"]))


def _unsure(runs: Sequence[_Opened], clients: dict[str, Total]) -> dict[str, list[str]]:
    """Each client's runs in which nobody is known to hold its triples: their costliest client was counted."""
    return {name: [str(runs[place].path) for place in total.unsure] for name, total in clients.items() if total.unsure}


def _worth(
    clients: dict[str, Total], costs: dict[str, float], delta: float, accountant: Accountant
) -> dict[str, GuessWorth]:
    """What a guess about a triple of each client is worth after all runs; nothing where nothing is guaranteed."""
    from fedkge.accounting.posterior import guess_worth  # noqa: PLC0415

    found = {}
    for client, total in clients.items():
        worth = guess_worth(total.spending.charges, costs[client], delta, adaptive=bool(total.spending.budgets))
        if worth and accountant.sound:
            found[client] = worth
    return found


def _by_owners(
    runs: Sequence[_Opened], clients: dict[str, Total], delta: float, accountant: Accountant
) -> dict[int, float]:
    from fedkge.accounting.statements import epsilon_by_owners, spending_of_all  # noqa: PLC0415

    unsure = any(total.unsure for total in clients.values())
    everything = spending_of_all(run.ledger for run in runs) if unsure else None
    spendings = {name: total.spending for name, total in clients.items()}
    return epsilon_by_owners(spendings, delta, accountant, everything)


def _curves(
    runs: Sequence[_Opened], clients: dict[str, Total], delta: float, accountant: Accountant
) -> dict[str, Curve]:
    """Epsilon over the charges that count for each client, run after run, where all noise was fixed in advance."""
    from fedkge.accounting.curves import epsilon_over_rounds  # noqa: PLC0415

    curves = {}
    for name, total in clients.items():
        entries = [charges for place, client in total.parts for charges in _releases(runs[place].ledger, client)]
        if entries and not total.spending.budgets:
            curves[name] = epsilon_over_rounds(entries, delta, accountant, POINTS)
    return curves


def _releases(ledger: Ledger, client: str) -> list[Charges]:
    """What a client was charged, round by round, the first with what was paid before it; then each release beyond."""
    before = tuple(charge for once in ledger.once(client).values() for charge in once.charges)
    first, *rest = [entry.charges for entry in ledger.by_round(client)] or [()]
    rounds = [(*before, *first), *rest] if before or first else []
    return rounds + [extra.charges for extra in ledger.extras(client)]


def _show(
    runs: Sequence[_Opened],
    record: dict[str, Any],
    clients: dict[str, Total],
    owners: dict[int, float],
    curves: dict[str, Curve],
) -> None:
    console, name, delta = stdout(), label(record["accountant"]), record["delta"]
    header = ("client", "budget", "spent", "left", "delta", "accountant", "rounds")
    for run, each in zip(runs, record["runs"], strict=True):
        rows = [(client, *_cells(facts)) for client, facts in each["clients"].items()]
        console.print(grid(str(run.path), header, rows, words=(0, 5)))
        torn = max(facts["torn_lines"] for facts in each["clients"].values())
        if torn:
            say(f"{run.path}: {torn} torn line(s) after crashes, each counted as one round of every client.")
    if len(runs) > 1:
        rows = [(client, _cost(record["together"][client])) for client in clients]
        console.print(grid(f"All runs together, at delta {delta:g} ({name})", ("client", "epsilon"), rows))
        _tell_unsure(record["counted_by_costliest"])
    if len(owners) > 1:
        unsure = bool(record["counted_by_costliest"])
        rows = [(_holders(count, len(clients), unsure), shown(cost)) for count, cost in owners.items()]
        console.print(grid(f"The worst for a triple, at delta {delta:g} ({name})", ("held by", "epsilon"), rows))
    milestones = sorted({number for curve in curves.values() for number, _ in curve})
    if len(milestones) > 1:
        found = {client: dict(curve) for client, curve in curves.items()}
        rows = [
            (str(number), *(shown(found[client][number]) if number in found[client] else "" for client in found))
            for number in milestones
        ]
        console.print(grid(f"Epsilon over rounds ({name})", ("round", *found), rows, words=()))
    for reason in record["not_private_because"]:
        console.print(f"{NOT_PRIVATE}: {reason}.", style="bold", markup=False, soft_wrap=True)


def _tell_unsure(unsure: dict[str, list[str]]) -> None:
    """Which runs were counted by their costliest client, and why."""
    for path in dict.fromkeys(path for paths in unsure.values() for path in paths):
        names = ", ".join(name for name, paths in unsure.items() if path in paths)
        stdout().print(
            f"An upper bound: nobody in {path} is known to hold the same triples as {names} (another split or other "
            "data, or a ledger without a digest, or with one under another key), so its costliest client is counted in "
            "full.\n",
            markup=False,
            soft_wrap=True,
        )


def _cells(facts: dict[str, Any]) -> tuple[str, ...]:
    budget = "none" if facts["budget"] is None else f"{facts['budget']:g}"
    left = "-" if facts["left"] is None else shown(facts["left"])
    return (
        budget,
        _cost(facts["spent"]),
        left,
        f"{facts['delta']:g}",
        label(facts["accountant"]),
        f"{facts['rounds_charged']:,}",
    )


def _cost(cost: float | None) -> str:
    return "no guarantee" if cost is None else shown(cost)


def _holders(count: int, clients: int, unsure: bool) -> str:
    if count == 1:
        return "one client in each run" if unsure else "one client"
    if unsure:
        return "all clients of all runs"
    return f"all {clients} clients" if count == clients else f"{count} of {clients} clients"


def _plot(curves: dict[str, Curve], runs: Sequence[_Opened], path: Path) -> None:
    from fedkge.accounting.curves import plot_curves  # noqa: PLC0415

    budgets = {run.ledger.promised(client) for run in runs for client in run.ledger.clients}
    budget = budgets.pop() if len(budgets) == 1 else None
    plot_curves(curves, path, " + ".join(run.path.name for run in runs), budget)
