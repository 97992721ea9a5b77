"""`fedkge report`: one page that says what was promised, what was measured, and what is not covered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedkge.api.paid_metrics import release_metrics
from fedkge.api.reports import Report
from fedkge.api.reports import report as write
from fedkge.cli.arguments import RunPath
from fedkge.cli.tables import print_json, print_line, say, stdout

EXAMPLE = "Example: fedkge report runs/open, then open runs/open/report-for-owner.html in a browser"


def report(
    run: RunPath,
    for_owner: Annotated[
        bool,
        typer.Option("--for-owner", help="Write only the owner's copy, with exact figures, attacks and named triples."),
    ] = False,
    beside: Annotated[
        list[Path] | None,
        typer.Option(help="Another run. The owner's copy shows its utility for comparison. Repeat it for several."),
    ] = None,
    metrics_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Pay this epsilon per client, on top of its budget, for a noisy ranking figure in the shareable copy. "
            "The noise is drawn once: the same epsilon shows the same figure again."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Page to write, NAME.html. Its JSON and NAME-for-owner.html go beside it. Without it, report.html in "
            "the run directory."
        ),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also write PDF files (needs WeasyPrint).")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one line of JSON on stdout: the shareable copy or, with --for-owner, that."),
    ] = False,
) -> None:
    """Write the privacy report: one copy to share, one for the owner.

    report.html may be shared. It holds only what is public or paid for by a privacy budget.

    report-for-owner.html is for the owner of the data. It has attacks, audit, exact figures and exposed triples.

    Each copy is a page and a JSON file. A page has no scripts and loads nothing from the network.
    """
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
    for one in release_metrics(run, epsilon):
        mean = one.mean
        say(
            f"{one.client}: MRR {mean.value:.3f} (noise about {mean.deviation:.3f}), raw ranks of about "
            f"{max(0, mean.number):,} {one.split} triples; paid with epsilon {mean.epsilon:g} on top of its budget"
        )


def _tell(written: Report) -> None:
    """The owner's verdict, and which copy is for whom."""
    stdout().print(written.sentence, style="bold", soft_wrap=True)
    for remark in written.remarks:
        print_line(f"- {remark}")
    if written.shareable is not None:
        print_line(f"Shareable copy, only what is public or paid for: {written.shareable}")
    print_line(f"Owner's copy, exact figures and named triples: {written.owner}")
    say("Share only the shareable copy. Keep the owner's copy, and the lines above, with the data.")
