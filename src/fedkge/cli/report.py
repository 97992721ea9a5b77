"""`fedkge report`: one page that says what was promised, what was measured, and what is not covered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkge.cli.tables import print_json, say, stdout

if TYPE_CHECKING:
    from fedkge.api.reports import Report

EXAMPLE = "Example: fedkge report runs/open, then open runs/open/report-for-owner.html in a browser"


def report(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    for_owner: Annotated[
        bool, typer.Option("--for-owner", help="Write the owner's copy alone: exact figures, attacks, named triples.")
    ] = False,
    beside: Annotated[
        list[Path] | None,
        typer.Option(help="Another run whose utility to show beside, in the owner's copy; repeat for several."),
    ] = None,
    metrics_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Pay so much epsilon per client, on top of its budget, for a ranking figure that may be passed on. "
            "Drawn once; the same number again shows the same figure."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The page; beside it its JSON, and the owner's copy as NAME-for-owner. Default: in the run."),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also as PDF (needs WeasyPrint).")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON on stdout, in one line: of the shareable copy, or with --for-owner.")
    ] = False,
) -> None:
    """Write two copies of the report, each as a page and as JSON.

    report.html may be passed on: it holds only what is public or paid for.
    report-for-owner.html is for the owner of the data: attacks, audit, exact figures, exposed triples.
    A page is one file without scripts that fetches nothing.
    """
    from fedkge.api.reports import report as write  # noqa: PLC0415 (heavy)

    if metrics_epsilon is not None:
        _pay(run, metrics_epsilon)
    written = write(run, out=out, for_owner=for_owner, beside=beside or (), pdf=pdf)
    if as_json:
        page = written.owner if written.shareable is None else written.shareable
        print_json(json.loads(page.with_suffix(".json").read_text(encoding="utf-8")))
        return
    _tell(written)


def _pay(run: Path, epsilon: float) -> None:
    """Release the figures, or say what was released before."""
    from fedkge.api.paid_metrics import release_metrics  # noqa: PLC0415 (heavy)

    for one in release_metrics(run, epsilon):
        mean = one.mean
        say(
            f"{one.client}: MRR {mean.value:.3f} (noise about {mean.deviation:.3f}) of about {max(0, mean.number):,} "
            f"{one.split} triples, raw ranks; paid with epsilon {mean.epsilon:g} on top of its budget"
        )


def _tell(written: Report) -> None:
    """The owner's verdict, and which copy is for whom."""
    console = stdout()
    console.print(written.sentence, style="bold", markup=False, soft_wrap=True)
    for remark in written.remarks:
        console.print(f"- {remark}", markup=False, soft_wrap=True)
    if written.shareable is not None:
        shareable = f"Shareable copy, only what is public or paid for: {written.shareable}"
        console.print(shareable, markup=False, soft_wrap=True)
    console.print(f"Owner's copy, exact figures and named triples: {written.owner}", markup=False, soft_wrap=True)
    say("Pass on the shareable copy alone. Keep the owner's copy, and what stands above, with the data.")
