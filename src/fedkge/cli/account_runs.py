"""What runs have spent: each ledger, all of them together, and a triple that several clients hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.cli.account import NOT_PRIVATE, POINTS, finite, label, shown
from fedkge.cli.account_copy import worth_table
from fedkge.cli.tables import grid, print_json, say, stderr, stdout
from fedkge.errors import ConfigurationError, PrivacyError, RunError

if TYPE_CHECKING:
    from fedkge.accounting import Accountant, Ledger
    from fedkge.accounting.curves import Curve
    from fedkge.accounting.posterior import GuessWorth
    from fedkge.accounting.statements import Total


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
    from fedkge.accounting.statements import spending_over_runs  # noqa: PLC0415

    runs = [_open(path) for path in _with_overwritten(paths)]
    _check_same_data(runs)
    given, name = _delta(runs, delta), accountant or _accountant(runs)
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
    from fedkge.federation.run import RunDirectory, check_has_data  # noqa: PLC0415 (heavy)

    if path.is_file():
        ledger, data = Ledger.read(path), ""
    elif (path / FILE_NAME).is_file():
        ledger, directory = Ledger.read(path / FILE_NAME), RunDirectory(path)
        provenance = directory.read_configuration()[1] if directory.exists() else {}
        check_has_data(path, provenance)
        data = str(provenance.get("data", ""))
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
    from fedkge.accounting.validity import why_not_private  # noqa: PLC0415

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
        entries = [entry.charges for place, client in total.parts for entry in runs[place].ledger.by_round(client)]
        if entries and not total.spending.budgets:
            curves[name] = epsilon_over_rounds(entries, delta, accountant, POINTS)
    return curves


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
            "data, or the ledger does not tell), so its costliest client is counted in full.\n",
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

    budgets = {promise.epsilon for run in runs for promise in run.ledger.promises.values()}
    budget = budgets.pop() if len(budgets) == 1 else None
    plot_curves(curves, path, " + ".join(run.path.name for run in runs), budget)
