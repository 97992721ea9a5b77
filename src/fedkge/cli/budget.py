"""What a defended run promised and spent, for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from fedkge.cli.tables import grid, say

if TYPE_CHECKING:
    from fedkge.configuration import Configuration
    from fedkge.federation.run import Run


def warn(configuration: Configuration) -> None:
    """Say loudly what makes a defence worth nothing."""
    if configuration.noise_seed is not None:
        say(
            f"WARNING: the noise comes from the research seed {configuration.noise_seed}. Who knows it can take the "
            "noise away: this run is NOT private. Leave --noise-seed out for noise from the operating system."
        )
    if configuration.selection == "ptr-published":
        say(
            "WARNING: selection ptr-published is the paper's, as printed: relations take raw gradients and its epsilon "
            "is not sound. This run is NOT private."
        )


def budget_record(run: Run) -> dict[str, Any] | None:
    """Per client what was promised, spent and left; None without a defence."""
    if run.ledger is None:
        return None
    record: dict[str, Any] = {}
    tests = run.metrics[-1].get("tests", {}) if run.metrics else {}
    for client, promise in run.ledger.promises.items():
        spent = run.ledger.spent(client)
        record[client] = {
            "spent": spent,
            "budget": promise.epsilon,
            "left": None if promise.epsilon is None else max(0.0, promise.epsilon - spent),
            "delta": promise.delta,
            "noise": promise.facts["noise"],
            "rounds": len(run.ledger.by_round(client)),
            "accountant": promise.accountant,
            "neighbours": promise.neighbours,
            **({"tests": tests[client]} if client in tests else {}),
        }
    return record


def budget_table(record: dict[str, Any]) -> RenderableType:
    """The record as a table."""
    rows = [
        (
            client,
            f"{facts['spent']:.3f}",
            "no limit" if facts["budget"] is None else f"{facts['budget']:g}",
            "-" if facts["left"] is None else f"{facts['left']:.3f}",
            f"{facts['delta']:g}",
            f"{facts['noise']:.3f}",
            str(facts["rounds"]),
        )
        for client, facts in record.items()
    ]
    first = next(iter(record.values()))
    title = f"Privacy: epsilon per client, {first['accountant']} accountant; neighbours: {first['neighbours']}"
    columns = ("client", "spent", "budget", "left", "delta", "noise", "rounds paid")
    if "tests" not in first:
        return grid(title, columns, rows)
    told = [f"{facts['tests']['passed']:,} of {facts['tests']['made']:,}" for facts in record.values()]
    return grid(title, (*columns, "tests passed"), [(*row, each) for row, each in zip(rows, told, strict=True)])
