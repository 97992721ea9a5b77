"""What a defended run promised and spent, for people and programs."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from fedkge.accounting import Ledger
from fedkge.accounting.deltas import large_epsilon
from fedkge.accounting.facts import NoisySteps
from fedkge.accounting.overwritten import overwritten_runs
from fedkge.accounting.validity import other_rounds
from fedkge.api.budgets import budget_of
from fedkge.cli.account import NOT_PRIVATE, shown
from fedkge.cli.tables import grid, say
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.report.promise_words import NEIGHBOURS
from fedkge.runs.directory import RunDirectory
from fedkge.runs.run import Run


def warn(configuration: Configuration) -> None:
    """Warn of options that take the guarantee of a defence away, or weaken it."""
    privacy = configuration.privacy
    if warning := large_epsilon(privacy.epsilon):
        say(f"WARNING: {warning}")
    if privacy.noise_seed is not None:
        say(
            f"WARNING: this run is NOT private. Its noise comes from the research seed {privacy.noise_seed}, and "
            "anyone who knows the seed can remove the noise. Leave out --noise-seed to draw system noise."
        )
    defence = chosen_defence(configuration)
    if defence.keeps_ledger and (reason := defence.describe(configuration).not_private):
        say(f"WARNING: this run is NOT private: {reason}.")


def budget_record(run: Run) -> dict[str, Any] | None:
    """Per client what was promised, spent and left; None without a defence."""
    if run.ledger is None:
        return None
    tests = run.metrics[-1].get("tests", {}) if run.metrics else {}
    paths = RunDirectory(run.directory).earlier_ledgers() if run.directory else []
    before = overwritten_runs(run.ledger, paths)
    return {
        client: {
            **_facts(run.ledger, client),
            **({"tests": tests[client]} if client in tests else {}),
            **({"overwritten": {**before[client].record(), "run": str(run.directory)}} if client in before else {}),
        }
        for client in run.ledger.clients
    }


def _facts(ledger: Ledger, client: str) -> dict[str, Any]:
    promise, budget, rounds = ledger.promises[client], budget_of(ledger, client), other_rounds(ledger, client)
    return {
        "spent": budget.spent,
        "budget": budget.promised,
        "left": budget.left,
        "delta": promise.delta,
        "noise": promise.plan.noise if isinstance(promise.facts.mechanism, NoisySteps) else None,
        "rounds": len(ledger.by_round(client)),
        "accountant": promise.accountant,
        "neighbours": NEIGHBOURS[promise.neighbours],
        "private": budget.private,
        "not_private_because": budget.not_private_because,
        **({"rounds_planned": rounds[1]} if rounds else {}),
    }


def budget_table(record: dict[str, Any]) -> RenderableType:
    """The record as a table, and below it what its numbers do not say."""
    rows: list[tuple[str, ...]] = [
        (
            client,
            f"{facts['spent']:.3f}",
            "no limit" if facts["budget"] is None else f"{facts['budget']:g}",
            "-" if facts["left"] is None else f"{facts['left']:.3f}",
            f"{facts['delta']:g}",
            "-" if facts["noise"] is None else f"{facts['noise']:.3f}",
            str(facts["rounds"]),
        )
        for client, facts in record.items()
    ]
    first = next(iter(record.values()))
    title = f"Privacy: epsilon per client, {first['accountant']} accountant; neighbours: {first['neighbours']}"
    columns: tuple[str, ...] = ("client", "spent", "budget", "left", "delta", "noise", "rounds paid")
    if "tests" in first:
        told = [f"{facts['tests']['passed']:,} of {facts['tests']['made']:,}" for facts in record.values()]
        columns, rows = (*columns, "tests passed"), [(*row, each) for row, each in zip(rows, told, strict=True)]
    return Group(grid(title, columns, rows), *_remarks(record))


def _remarks(record: dict[str, Any]) -> list[Text]:
    """What is loud first."""
    reasons = dict.fromkeys(facts["not_private_because"] for facts in record.values() if not facts["private"])
    lines = [Text(f"{NOT_PRIVATE}: {reason}.\n", style="bold") for reason in reasons]
    lines += [Text(f"{line}\n") for line in (_overwritten(record), _other_rounds(record)) if line]
    return lines


def _overwritten(record: dict[str, Any]) -> str:
    """What runs that were overwritten here have spent on the same triples; blank where there are none."""
    found = {client: facts["overwritten"] for client, facts in record.items() if "overwritten" in facts}
    if not found:
        return ""
    first = next(iter(found.values()))
    runs = "An overwritten run" if first["runs"] == 1 else f"{first['runs']} overwritten runs"
    costs = {client: each["together"] for client, each in found.items()}
    each = ", ".join(f"{client} {'no guarantee' if cost is None else shown(cost)}" for client, cost in costs.items())
    most = " at most" if any(each["upper_bound"] for each in found.values()) else ""
    return (
        f"{runs} in this directory spent on the same data, which `spent` and `left` do not count. Together{most}: "
        f"{each} (fedkge account {first['run']})."
    )


def _other_rounds(record: dict[str, Any]) -> str:
    """What holds where more or fewer rounds were paid than planned; blank where they are the same."""
    found = {client: facts for client, facts in record.items() if "rounds_planned" in facts}
    if not found:
        return ""
    planned = next(iter(found.values()))["rounds_planned"]
    limited = all(facts["budget"] is not None for facts in found.values())
    otherwise = "only the budget does" if limited else "nothing fixed does, because there is no budget"
    return (
        f"{planned} rounds were planned, but {', '.join(found)} paid for more or fewer. `spent` holds if nobody "
        f"decided this after seeing results. Otherwise {otherwise}."
    )
