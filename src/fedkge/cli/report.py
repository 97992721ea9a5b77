"""`fedkge report`: one page that says what was promised, what was measured, and what is not covered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkge.cli.tables import print_json, say, stdout
from fedkge.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkge.report import Document

EXAMPLE = "Example: fedkge report runs/open, then open runs/open/report.html in a browser"

NAMES = {False: "report.html", True: "report-for-owner.html"}
"""The owner's copy has a name of its own, so that it is not passed on by mistake."""


def report(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    for_owner: Annotated[
        bool, typer.Option("--for-owner", help="Name the exposed triples: for the data owner and nobody else.")
    ] = False,
    beside: Annotated[
        list[Path] | None, typer.Option(help="Another run whose utility to show beside; repeat for several.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The page; its JSON goes beside it. Default: in the run.")] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also as PDF (needs WeasyPrint).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report's JSON on stdout, in one line.")] = False,
) -> None:
    """Write report.html and report.json: the verdict, the claim, the attacks, the audit, the utility, the limits.

    The page is one file without scripts that fetches nothing. Without --for-owner it holds counts only.
    """
    from fedkge.report.page import pdf_writer  # noqa: PLC0415 (heavy)

    path = out or run / NAMES[for_owner]
    if path.suffix not in (".html", ".htm"):
        raise ConfigurationError(f"--out: expected a file that ends in .html, got {path}")
    write_pdf = pdf_writer() if pdf else None
    document = write_report(run, path, for_owner, beside or ())
    if write_pdf is not None:
        write_pdf(path.read_text(encoding="utf-8"), path.with_suffix(".pdf"))
    if as_json:
        print_json(document.as_dict())
        return
    console = stdout()
    console.print(document.verdict.sentence, style="bold", markup=False, soft_wrap=True)
    for remark in document.verdict.remarks:
        console.print(f"- {remark}", markup=False, soft_wrap=True)
    console.print(f"Report: {path}", markup=False, soft_wrap=True)
    if for_owner:
        say("This copy names triples: keep it with the data.")


def write_report(run: Path, path: Path, for_owner: bool = False, beside: Sequence[Path] = ()) -> Document:
    """Write the page and its JSON; returns the document that both are made from."""
    from fedkge.federation.storage import make_folder, write_atomically  # noqa: PLC0415 (heavy)
    from fedkge.report import gather, render  # noqa: PLC0415

    document = gather(run, "for-owner" if for_owner else "shareable", beside)
    page = render(document)
    make_folder(path.parent)
    write_atomically(path.with_suffix(".json"), document.to_json().encode())
    write_atomically(path, page.encode())
    return document
