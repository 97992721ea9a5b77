"""`fedkge report`: one page that says what was promised, what was measured, and what is not covered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkge.base.errors import ConfigurationError
from fedkge.cli.tables import print_json, say, stdout

if TYPE_CHECKING:
    from fedkge.report import Document

EXAMPLE = "Example: fedkge report runs/open, then open runs/open/report-for-owner.html in a browser"

NAMES = {False: "report.html", True: "report-for-owner.html"}
"""The owner's copy has a name of its own, so that it is not passed on by mistake."""


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
    from fedkge.report.page import pdf_writer  # noqa: PLC0415 (heavy)

    path = out or run / NAMES[for_owner]
    if path.suffix not in (".html", ".htm"):
        raise ConfigurationError(f"--out: expected a file that ends in .html, got {path}")
    write_pdf = pdf_writer() if pdf else None
    if metrics_epsilon is not None:
        _pay(run, metrics_epsilon)
    paths = {True: path} if for_owner else {False: path, True: owners_path(path)}
    documents = {owner: write_report(run, paths[owner], owner, beside or ()) for owner in paths}
    if write_pdf is not None:
        for page in paths.values():
            write_pdf(page.read_text(encoding="utf-8"), page.with_suffix(".pdf"))
    if as_json:
        print_json(documents[for_owner].as_dict())
        return
    _tell(documents[True], paths)


def _pay(run: Path, epsilon: float) -> None:
    """Release the figures, or say what was released before."""
    from fedkge.api.paid_metrics import release_metrics  # noqa: PLC0415 (heavy)

    for one in release_metrics(run, epsilon):
        mean = one.mean
        say(
            f"{one.client}: MRR {mean.value:.3f} (noise about {mean.deviation:.3f}) of about {max(0, mean.number):,} "
            f"{one.split} triples, raw ranks; paid with epsilon {mean.epsilon:g} on top of its budget"
        )


def _tell(document: Document, paths: dict[bool, Path]) -> None:
    """The owner's verdict, and which copy is for whom."""
    console = stdout()
    console.print(document.verdict.sentence, style="bold", markup=False, soft_wrap=True)
    for remark in document.verdict.remarks:
        console.print(f"- {remark}", markup=False, soft_wrap=True)
    if False in paths:
        console.print(f"Shareable copy, only what is public or paid for: {paths[False]}", markup=False, soft_wrap=True)
    console.print(f"Owner's copy, exact figures and named triples: {paths[True]}", markup=False, soft_wrap=True)
    say("Pass on the shareable copy alone. Keep the owner's copy, and what stands above, with the data.")


def owners_path(path: Path) -> Path:
    """Where the owner's copy goes when the shareable one goes to `path`.

    >>> owners_path(Path("runs/open/report.html")).name
    'report-for-owner.html'
    """
    return path.with_name(f"{path.stem}-for-owner{path.suffix}")


def write_report(run: Path, path: Path, for_owner: bool = False, beside: Sequence[Path] = ()) -> Document:
    """Write the page and its JSON; returns the document that both are made from."""
    from fedkge.report import gather, render  # noqa: PLC0415
    from fedkge.report.shareable import shareable_report  # noqa: PLC0415
    from fedkge.store.durable_files import make_folder, write_atomically  # noqa: PLC0415 (heavy)

    if for_owner:
        document = gather(run, "for-owner", beside)
        page, content = render(document).encode(), document.to_json().encode()
    else:
        document, files = shareable_report(run)
        page, content = files["report.html"], files["report.json"]
    make_folder(path.parent)
    write_atomically(path.with_suffix(".json"), content)
    write_atomically(path, page)
    return document
