"""What may be passed on, and what may not: every output of fedkge stands in one of the two lists below.

Rule: an unpaid function of private triples is its owner's alone. So a shareable output is a function of releases that a
ledger has paid for, of the configuration, and of names, which are public in the promise. For two neighbouring graphs
with the same releases it is the same, byte for byte: `tests/report/test_shareable.py` trains on both and compares them.
A file, an export format or a message that stands in neither list makes a test fail.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fedkge.accounting.ledger import FILE_NAME as LEDGER
from fedkge.accounting.passing_on import ledger_to_pass_on
from fedkge.runs.directory import ENTITIES, MODEL, RELATIONS
from fedkge.runs.vectors.exporting import ENDINGS, FORMATS, export_vectors

if TYPE_CHECKING:
    from fedkge.report import Document
    from fedkge.runs.run import Run

Files: TypeAlias = Mapping[str, bytes]
"""File names and what is in them."""


@dataclass(frozen=True, slots=True)
class Output:
    """Something that may be passed on: what it is called, who gets it, and how its bytes are made from a run."""

    name: str
    who: str
    make: Callable[[Run], Files]


def shareable_report(folder: Path) -> tuple[Document, Files]:
    """The shareable copy of a run's report: the document, and its page and JSON."""
    from fedkge.report import gather, render  # noqa: PLC0415 (heavy)

    document = gather(folder)
    return document, {"report.html": render(document).encode(), "report.json": document.to_json().encode()}


def report_files(run: Run) -> Files:
    """The page and the JSON of the shareable report."""
    return shareable_report(_folder(run))[1]


def ledger_file(run: Run) -> Files:
    """The ledger without the digests by which its holder recognises data; nothing without a defence."""
    content = (_folder(run) / LEDGER).read_bytes()
    return {LEDGER: ledger_to_pass_on(content)} if content else {}


def model_files(run: Run) -> Files:
    """The model of a defended run with its names."""
    return {name: (_folder(run) / name).read_bytes() for name in (MODEL, ENTITIES, RELATIONS)}


def exported_files(format_name: str, run: Run) -> Files:
    """What `fedkge export` writes: of all clients together, and of each."""
    with tempfile.TemporaryDirectory() as folder:
        for client in (None, *run.clients) if "entities" in run.tensors else run.clients:
            path = Path(folder, f"{client or 'all'}{ENDINGS[format_name]}")
            export_vectors(run, path, format_name, client)
        found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _folder(run: Run) -> Path:
    assert run.directory is not None  # noqa: S101 (only runs on disk have outputs)
    return run.directory


OUTPUTS: tuple[Output, ...] = (
    Output("report", "anybody: the page and its JSON that `fedkge report` calls shareable", report_files),
    Output("ledger", "anybody: what `fedkge account --pass-on` writes", ledger_file),
    Output("model", "whoever is given a defended model", model_files),
    *(
        Output(
            f"export {name}",
            f"whoever is given what `fedkge export --format {name}` writes",
            partial(exported_files, name),
        )
        for name in FORMATS
    ),
)
"""What is made from a run directory and may be passed on, if the run has a defence that promises something."""

MESSAGES: Mapping[str, str] = {
    "Accept": "the version, and a fingerprint of the consortium key and the rules for names",
    "Aligned": "points of a joint alignment: functions of names and of secret exponents",
    "Greeting": "pseudonyms, widths, and the size that the promise calls public or has paid for",
    "Sharing": "how many rows it will share: a function of names",
    "Upload": "rows that follow from releases",
    "Goodbye": "that its budget is spent: follows from the ledger",
    "Kept": "that the final rows are on its disk",
    "Failure": "which kind of error it was; text of its own files stays at the site",
}
"""What a defended site sends, by the kind of message, and why each may be seen."""

REFUSED: Mapping[str, str] = {
    "RankingMetrics": "metrics of private triples: a defended client refuses to rank for the server"
}
"""Messages that a defended site never sends."""

SITE_OUTPUTS: Mapping[str, str] = {
    "preview": "the lines `leaves once` and `leaves each round` of `fedkge federation check`; its other lines, the "
    "noise of the promise among them, follow from the exact graph",
    "status": "the server's status.json: made of messages alone",
}
"""What else others read of a site, or a site is told to pass on."""

OWNERS: Mapping[str, str] = {
    "config.toml": "a keyed digest of the data",
    "data.key": "with it digests can be tried out",
    "metrics.jsonl": "exact metrics",
    "rounds.jsonl": "at a server: the losses of sites without a defence",
    "ledger.jsonl": "keyed digests of the data; the ledger to pass on has none",
    "attacks.json": "attacks on private triples",
    "exposed.json": "private triples by name",
    "audit.json": "guesses about what is in the data",
    "canaries.jsonl": "which canaries are in the data",
    "targets-*.jsonl": "private triples by name",
    "report-for-owner.html": "exact figures",
    "report-for-owner.json": "exact figures",
    "checkpoints/": "states of clients",
    "names/": "which names are released, with the salt of their fingerprint",
    "transcript/": "what each party saw, and each client's relations",
    "shadows/": "scores on private triples",
    "graphs/": "triples",
    "sites.json": "who is who in a gathered run",
    "status.json": "a site's own errors may name files and names",
    "nvflare.log": "a site's own errors may name files and names",
    "pseudonyms.json": "names with their pseudonyms",
    "ring.json": "secret exponents",
    "tensorboard/": "exact metrics",
    "handed-out.json": "who has the final rows",
    "job/": "what the server submits",
}
"""What else lies in a run directory, and why it stays with its owner; a folder ends in a slash."""


def is_listed(path: str) -> bool:
    """Whether a file of a run directory, by its path there, stands in one of the two lists.

    >>> is_listed("report.html"), is_listed("transcript/round-000001/broadcast.safetensors"), is_listed("surprise.txt")
    (True, True, False)
    """
    shared = {MODEL, ENTITIES, RELATIONS, "report.html", "report.json"}
    shared |= {f"vectors{ending}" for ending in ENDINGS.values()} | {"vectors.relations.txt"}
    first = Path(path).parts[0]
    return first in shared or any(Path(first).match(own.rstrip("/")) for own in OWNERS)
