"""`fedkge reproduce`: starts the package `paper` of a clone, which repeats the paper's tables and figures."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import fedkge
from fedkge.base.errors import UnavailableError
from fedkge.cli.arguments import Json

EXAMPLE = "Example: fedkge reproduce table-attacks --quick"
PACKAGE, MARK = "paper", "claims.toml"
"""The package that a clone holds beside `src/`, and a file that other packages of this name do not have."""
PARTS_HELP = (
    "all, or some of table-attacks, table-utility, figure-rounds, figure-defence and figure-tradeoff, or one cell such "
    "as fb15k-237.transe.sound.recommended.e16.s11"
)


def reproduce(
    parts: Annotated[list[str] | None, typer.Argument(metavar="PART...", help=PARTS_HELP, show_default="all")] = None,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Use sub-graphs (minutes) or the whole graphs (hours).")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the cells (JSON) and the page. Cells that exist are not measured again.",
            show_default="results, or results/quick",
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder for temporary run directories.")] = Path("runs/reproduction"),
    settings: Annotated[
        Path | None, typer.Option(help="Folder with the settings of the parts.", show_default="paper/parts")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Number of federations at a time. 0 means one per core.")] = 0,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Show what is left to do and how long it takes, and do nothing.")
    ] = False,
    page_only: Annotated[
        bool, typer.Option("--page", help="Write the page from the existing cells, and do nothing else.")
    ] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Keep the run directories and their transcripts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce the paper's tables and figures (in a clone of fedkge).

    The page shows our numbers next to the paper's, and says what differs and why. There are two columns: the method as
    published, and a sound version of it. You can stop the command at any time. Call it again, and it continues.
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
    """The module `paper.command`: from the clone that fedkge runs from, the clone around `folder`, or as installed."""
    for root in (Path(fedkge.__file__).parents[2], folder, *folder.parents):
        if _is_clone(root):
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module(f"{PACKAGE}.command")
    found = importlib.util.find_spec(PACKAGE)
    if found and found.origin and (Path(found.origin).parent / MARK).exists():
        return importlib.import_module(f"{PACKAGE}.command")
    raise UnavailableError(
        f"expected the folder {PACKAGE}/ of fedkge's repository, which the installed package does not hold, got none "
        f"in {folder} or above it; clone the repository and call `fedkge reproduce` inside the clone"
    )


def _is_clone(root: Path) -> bool:
    """Whether fedkge's repository lies here."""
    return (root / PACKAGE / MARK).is_file() and (root / "src" / "fedkge" / "__init__.py").is_file()
