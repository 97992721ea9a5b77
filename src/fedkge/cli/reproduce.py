"""`fedkge reproduce`: the launcher of `paper`, the paper's tables and figures again, which a clone of fedkge holds."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import fedkge
from fedkge.base.errors import UnavailableError

EXAMPLE = "Example: fedkge reproduce table-attacks --quick"
PACKAGE, MARK = "paper", "claims.toml"
"""The package that a clone holds beside `src/`, and the file by which it is told from others of that name."""
PARTS_HELP = (
    "all, or any of table-attacks, table-utility, figure-rounds, figure-defence, figure-tradeoff; or one cell, like "
    "fb15k-237.transe.sound.recommended.e16.s11"
)


def reproduce(
    parts: Annotated[list[str] | None, typer.Argument(metavar="PART...", help=PARTS_HELP, show_default="all")] = None,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="A sub-graph in minutes, or everything in hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Cells (JSON) and the page; what is there is not measured again.",
            show_default="results, or results/quick",
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Run directories while they are needed.")] = Path("runs/reproduction"),
    settings: Annotated[
        Path | None, typer.Option(help="Folder with the settings of every part.", show_default="paper/parts")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Federations at a time; 0: one per core.")] = 0,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Say what would be done, and how long; do nothing.")
    ] = False,
    page_only: Annotated[bool, typer.Option("--page", help="Write the page from the cells that are there.")] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Keep run directories with their transcripts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Regenerate the paper's tables and figures, beside its own numbers, with what differs and why.

    Runs from a clone of fedkge, which holds the paper. Two columns everywhere: as published, and sound. Stop it at any
    time: called again, it goes on where it stopped.
    """
    paper = load_paper(Path.cwd())
    paper.reproduce(
        paper.Request(
            parts=tuple(parts or ["all"]),
            quick=quick,
            out=out or Path("results/quick" if quick else "results"),
            runs=runs,
            settings=settings,
            workers=workers,
            plan_only=plan_only,
            page_only=page_only,
            keep_runs=keep_runs,
            as_json=as_json,
        )
    )


def load_paper(folder: Path) -> Any:
    """The module `paper.command`: of the clone that fedkge runs from, of the one around `folder`, or as installed."""
    for root in (Path(fedkge.__file__).parents[2], folder, *folder.parents):
        if _is_clone(root):
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module(f"{PACKAGE}.command")
    found = importlib.util.find_spec(PACKAGE)
    if found and found.origin and (Path(found.origin).parent / MARK).exists():
        return importlib.import_module(f"{PACKAGE}.command")
    raise UnavailableError(
        f"expected the folder {PACKAGE}/ of fedkge's repository, which the installed package does not hold; found none "
        f"in {folder} nor above it: clone the repository, and call `fedkge reproduce` inside the clone"
    )


def _is_clone(root: Path) -> bool:
    """Whether fedkge's repository lies here."""
    return (root / PACKAGE / MARK).is_file() and (root / "src" / "fedkge" / "__init__.py").is_file()
