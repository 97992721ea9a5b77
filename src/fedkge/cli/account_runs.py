"""What runs have spent, for people: each ledger, all of them together, and a triple that several clients hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedkge.base.errors import ConfigurationError
from fedkge.cli.account import NOT_PRIVATE, label, shown
from fedkge.cli.account_copy import worth_table
from fedkge.cli.tables import grid, print_json, say, stderr, stdout

if TYPE_CHECKING:
    from fedkge.api.accounts import Account, ClientAccount


def account_runs(
    paths: Sequence[Path],
    delta: float | None,
    allow_large_delta: bool,
    accountant: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print what the clients of these runs have spent."""
    from fedkge.accounting.deltas import large_epsilon  # noqa: PLC0415
    from fedkge.api.accounts import account  # noqa: PLC0415 (heavy)

    with stderr().status("accounting"):
        found = account(*paths, delta=delta, allow_large_delta=allow_large_delta, accountant=accountant)
        if plot is not None:
            _plot(found, plot)
    for notice in found.notices:
        say(notice)
    if as_json:
        print_json(found.record())
    else:
        _show(found)
        if found.guesses:
            stdout().print(worth_table(found.guesses))
    costs = found.together.values()
    if warning := large_epsilon(max((cost for cost in costs if math.isfinite(cost)), default=None)):
        say(f"WARNING: {warning}")
    if plot is not None:
        say(f"Drawn: {plot}")


def write_ledger_to_pass_on(paths: Sequence[Path], out: Path) -> None:
    """Write the ledger of one run without its digests of data; a file that is there stays."""
    from fedkge.api.ledgers import pass_on_ledger  # noqa: PLC0415 (heavy)

    if len(paths) != 1:
        raise ConfigurationError(f"--pass-on writes the ledger of one run, got {len(paths)} runs")
    say(f"Written for others to read: {pass_on_ledger(paths[0], out)}")


def _show(found: Account) -> None:
    console, name = stdout(), label(found.accountant)
    header = ("client", "budget", "spent", "left", "delta", "accountant", "rounds")
    for path, clients in found.runs.items():
        rows = [(client, *_cells(each)) for client, each in clients.items()]
        console.print(grid(path, header, rows, words=(0, 5)))
        if torn := max(each.torn_lines for each in clients.values()):
            say(f"{path}: {torn} torn line(s) after crashes, each counted as one round of every client.")
    if len(found.runs) > 1:
        rows = [(client, shown(cost)) for client, cost in found.together.items()]
        console.print(grid(f"All runs together, at delta {found.delta:g} ({name})", ("client", "epsilon"), rows))
        _tell_unsure(found.counted_by_costliest)
    if len(found.by_owners) > 1:
        unsure, clients_in_all = bool(found.counted_by_costliest), len(found.together)
        rows = [(_holders(count, clients_in_all, unsure), shown(cost)) for count, cost in found.by_owners.items()]
        console.print(grid(f"The worst for a triple, at delta {found.delta:g} ({name})", ("held by", "epsilon"), rows))
    milestones = sorted({number for curve in found.curves.values() for number, _ in curve})
    if len(milestones) > 1:
        curves = {client: dict(curve) for client, curve in found.curves.items()}
        body = [
            (str(number), *(shown(curve[number]) if number in curve else "" for curve in curves.values()))
            for number in milestones
        ]
        console.print(grid(f"Epsilon over rounds ({name})", ("round", *curves), body, words=()))
    for reason in found.not_private_because:
        console.print(f"{NOT_PRIVATE}: {reason}.", style="bold", markup=False, soft_wrap=True)


def _tell_unsure(unsure: Mapping[str, Sequence[str]]) -> None:
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


def _cells(client: ClientAccount) -> tuple[str, ...]:
    budget = client.budget
    return (
        "none" if budget.promised is None else f"{budget.promised:g}",
        shown(budget.spent),
        "-" if budget.left is None else shown(budget.left),
        f"{budget.delta:g}",
        label(client.accountant),
        f"{client.rounds_charged:,}",
    )


def _holders(count: int, clients: int, unsure: bool) -> str:
    if count == 1:
        return "one client in each run" if unsure else "one client"
    if unsure:
        return "all clients of all runs"
    return f"all {clients} clients" if count == clients else f"{count} of {clients} clients"


def _plot(found: Account, path: Path) -> None:
    from fedkge.accounting.curves import plot_curves  # noqa: PLC0415

    budgets = {client.budget.promised for clients in found.runs.values() for client in clients.values()}
    budget = budgets.pop() if len(budgets) == 1 else None
    plot_curves(found.curves, path, " + ".join(Path(run).name for run in found.runs), budget)
