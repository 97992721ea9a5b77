"""What runs have spent: each ledger, all of them together, and a triple that several clients hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.cli.account import POINTS, finite, label, shown
from fedkge.cli.tables import grid, print_json, say, stderr, stdout
from fedkge.errors import ConfigurationError, PrivacyError, RunError

if TYPE_CHECKING:
    from fedkge.accounting import Accountant, Ledger
    from fedkge.accounting.curves import Curve
    from fedkge.accounting.statements import Spending


@dataclass(frozen=True)
class _Opened:
    """A run's ledger, and the digest of the data it was trained on (blank for a bare ledger file)."""

    path: Path
    ledger: Ledger
    data: str


def account_runs(
    paths: Sequence[Path], delta: float | None, accountant: str | None, plot: Path | None, as_json: bool
) -> None:
    """Print what the clients of these runs have spent."""
    from fedkge.accounting import make_accountant  # noqa: PLC0415
    from fedkge.accounting.statements import epsilon_by_owners, spending_over_runs  # noqa: PLC0415

    runs = [_open(path) for path in _with_overwritten(paths)]
    _check_same_data(runs)
    given, name = _delta(runs, delta), accountant or _accountant(runs)
    counting = make_accountant(name)
    with stderr().status("accounting"):
        each = [_run_record(run) for run in runs]
        clients = spending_over_runs([run.ledger for run in runs])
        total = {client: spending.epsilon(given, counting) for client, spending in clients.items()}
        owners = epsilon_by_owners(clients, given, counting)
        curves = _curves(runs, given, counting)
        if plot is not None:
            _plot(curves, runs, plot)
    record = {
        "runs": each,
        "delta": given,
        "accountant": name,
        "sound": counting.sound,
        "together": {client: finite(cost) for client, cost in total.items()},
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
    if plot is not None:
        say(f"Drawn: {plot}")


def _with_overwritten(paths: Sequence[Path]) -> list[Path]:
    """The runs, and the ledgers of runs that were overwritten in their directories."""
    from fedkge.federation.run import RunDirectory  # noqa: PLC0415 (heavy)

    found: list[Path] = []
    for path in paths:
        earlier = RunDirectory(path).earlier_ledgers()
        if earlier:
            say(f"{path}: counting {len(earlier)} overwritten run{'s' if len(earlier) > 1 else ''} too")
        found += [path, *earlier]
    return found


def _open(path: Path) -> _Opened:
    from fedkge.accounting.ledger import FILE_NAME, Ledger  # noqa: PLC0415
    from fedkge.federation.run import RunDirectory  # noqa: PLC0415 (heavy)

    if path.is_file():
        ledger, data = Ledger.read(path), ""
    elif (path / FILE_NAME).is_file():
        ledger, directory = Ledger.read(path / FILE_NAME), RunDirectory(path)
        data = str(directory.read_configuration()[1].get("data", "")) if directory.exists() else ""
    elif RunDirectory(path).exists():
        raise PrivacyError(
            f"{path}: this run has no {FILE_NAME}: it was trained without a defence, so nothing bounds what it gave "
            "away; train with --defence recommended --epsilon 8"
        )
    else:
        raise RunError(f"{path}: no run here; expected a run directory or a {FILE_NAME}")
    if not ledger.clients:
        raise PrivacyError(f"{path}: nobody has promised anything yet; the run ended before its first round")
    return _Opened(path, ledger, data)


def _check_same_data(runs: Sequence[_Opened]) -> None:
    known = {run.data: run.path for run in runs if run.data}
    if len(known) > 1:
        (one, first), (other, second), *_ = known.items()
        raise ConfigurationError(
            f"{first} and {second} were trained on different data, or other shards of it ({one[:12]}, {other[:12]}), "
            "so their clients do not hold the same triples; account for them one by one. If a triple may be in both, "
            "its epsilons add up"
        )
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise ConfigurationError("a run was named twice; name each once, or its charges would be counted twice")


def _delta(runs: Sequence[_Opened], given: float | None) -> float:
    if given is not None:
        return given
    deltas = sorted({promise.delta for run in runs for promise in run.ledger.promises.values()})
    if len(deltas) > 1:
        raise ConfigurationError(f"the runs promised different deltas ({', '.join(map(str, deltas))}); choose: --delta")
    return deltas[0]


def _accountant(runs: Sequence[_Opened]) -> str:
    names = {promise.accountant for run in runs for promise in run.ledger.promises.values()}
    return names.pop() if len(names) == 1 else "pld"


def _run_record(run: _Opened) -> dict[str, Any]:
    clients = {}
    for client, promise in run.ledger.promises.items():
        entries, spent = run.ledger.by_round(client), run.ledger.spent(client)
        clients[client] = {
            "budget": promise.epsilon,
            "spent": finite(spent),
            "left": None if promise.epsilon is None else max(0.0, promise.epsilon - spent),
            "delta": promise.delta,
            "accountant": promise.accountant,
            "neighbours": promise.neighbours,
            "rounds_charged": len(entries),
            "rounds_released": sum(entry.released for entry in entries),
            "torn_lines": sum(entry.round is None for entry in entries),
        }
    return {"run": str(run.path), "clients": clients}


def _curves(runs: Sequence[_Opened], delta: float, accountant: Accountant) -> dict[str, Curve]:
    """Epsilon over the charges of all runs in order, for clients whose noise was fixed in advance."""
    from fedkge.accounting.curves import epsilon_over_rounds  # noqa: PLC0415
    from fedkge.accounting.ledger import FILTERED  # noqa: PLC0415

    entries: dict[str, list[Any]] = {}
    for run in runs:
        for client, promise in run.ledger.promises.items():
            if not promise.facts.get(FILTERED):
                entries.setdefault(client, []).extend(entry.charges for entry in run.ledger.by_round(client))
    return {client: epsilon_over_rounds(found, delta, accountant, POINTS) for client, found in entries.items() if found}


def _show(
    runs: Sequence[_Opened],
    record: dict[str, Any],
    clients: dict[str, Spending],
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
    if len(clients) > 1:
        rows = [(_holders(count, len(clients)), shown(cost)) for count, cost in owners.items()]
        console.print(grid(f"The worst for a triple, at delta {delta:g} ({name})", ("held by", "epsilon"), rows))
    milestones = sorted({number for curve in curves.values() for number, _ in curve})
    if len(milestones) > 1:
        found = {client: dict(curve) for client, curve in curves.items()}
        rows = [
            (str(number), *(shown(found[client][number]) if number in found[client] else "" for client in found))
            for number in milestones
        ]
        console.print(grid(f"Epsilon over rounds ({name})", ("round", *found), rows, words=()))


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


def _holders(count: int, clients: int) -> str:
    if count == 1:
        return "one client"
    return f"all {clients} clients" if count == clients else f"{count} of {clients} clients"


def _plot(curves: dict[str, Curve], runs: Sequence[_Opened], path: Path) -> None:
    from fedkge.accounting.curves import plot_curves  # noqa: PLC0415

    budgets = {promise.epsilon for run in runs for promise in run.ledger.promises.values()}
    budget = budgets.pop() if len(budgets) == 1 else None
    plot_curves(curves, path, " + ".join(run.path.name for run in runs), budget)
