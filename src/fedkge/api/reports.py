"""Write the report of a run: one copy that may be passed on, one for the owner of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from fedkge.api.opening import RunLike, directory_of
from fedkge.api.paid_metrics import release_metrics
from fedkge.base.errors import ConfigurationError
from fedkge.base.tabular import Row, Tabular
from fedkge.report import Document, gather, render
from fedkge.report.page import pdf_writer
from fedkge.report.shareable import shareable_report
from fedkge.store.durable_files import make_folder, write_atomically

NAMES = {False: "report.html", True: "report-for-owner.html"}
"""The owner's copy has a name of its own, so that it is not passed on by mistake."""
SHAREABLE, OWNER = "may be passed on", "for the owner of the data"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report(Tabular):
    """The report of a run: its verdict, and where the pages are. `shareable` is None where only the owner's was asked.

    `owner` and `shareable` are pages; their JSON stands beside them.
    """

    verdict: str
    sentence: str
    remarks: tuple[str, ...]
    owner: Path
    shareable: Path | None

    def title(self) -> str:
        """The verdict in one sentence."""
        return self.sentence

    def rows(self) -> list[Row]:
        """One row per page."""
        pages = {SHAREABLE: self.shareable, OWNER: self.owner}
        return [{"copy": copy, "page": str(page)} for copy, page in pages.items() if page is not None]


def report(
    run: RunLike,
    *,
    out: str | PathLike[str] | None = None,
    for_owner: bool = False,
    beside: Sequence[RunLike] = (),
    metrics_epsilon: float | None = None,
    pdf: bool = False,
) -> Report:
    """Write report.html, which may be passed on, and report-for-owner.html, each with its JSON; return the verdict.

    The shareable page holds only what is public or paid for. `for_owner` writes the owner's page alone; `out` is the
    path of the page. `metrics_epsilon` pays so much epsilon per client, on top of its budget, for a ranking figure that
    may be passed on.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> graph = fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1)
    >>> with TemporaryDirectory() as folder:
    ...     run = fk.train(graph, rounds=2, dimension=8, negatives=8, out=f"{folder}/run")
    ...     report(run).owner.name
    'report-for-owner.html'
    """
    folder = directory_of(run)
    path = Path(out) if out is not None else folder / NAMES[for_owner]
    if path.suffix not in (".html", ".htm"):
        raise ConfigurationError(f"--out: expected a file that ends in .html, got {path}")
    write_pdf = pdf_writer() if pdf else None
    if metrics_epsilon is not None:
        release_metrics(folder, metrics_epsilon)
    paths = {True: path} if for_owner else {False: path, True: owners_path(path)}
    others = [directory_of(other) for other in beside]
    documents = {owner: write_report(folder, paths[owner], owner, others) for owner in paths}
    if write_pdf is not None:
        for page in paths.values():
            write_pdf(page.read_text(encoding="utf-8"), page.with_suffix(".pdf"))
    verdict = documents[True].verdict
    return Report(verdict.kind, verdict.sentence, verdict.remarks, paths[True], paths.get(False))


def owners_path(path: Path) -> Path:
    """Where the owner's copy goes when the shareable one goes to `path`.

    >>> owners_path(Path("runs/open/report.html")).name
    'report-for-owner.html'
    """
    return path.with_name(f"{path.stem}-for-owner{path.suffix}")


def write_report(run: Path, path: Path, for_owner: bool = False, beside: Sequence[Path] = ()) -> Document:
    """Write one page and its JSON; returns the document that both are made from."""
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
