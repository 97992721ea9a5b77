"""`fedkge compare`: several runs side by side, defence by defence, epsilon by epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.base import numbers
from fedkge.base.errors import ConfigurationError
from fedkge.cli.arguments import Json
from fedkge.cli.tables import grid, print_json, print_line, say, stdout
from fedkge.report.comparison import ComparedRun, Comparison
from fedkge.report.comparison import compare as compare_runs
from fedkge.report.page import render_comparison
from fedkge.report.plane import draw_plane
from fedkge.report.svg import standalone
from fedkge.store.durable_files import make_folder, write_atomically

EXAMPLE = "Example: fedkge compare runs/open runs/defended --html comparison.html"

HEADER = ("", "defence", "claimed", "shown", "strongest attack", "AUC", "TPR", "tail", "head", "both", "gain")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run directories.")],
    plot: Annotated[
        Path | None, typer.Option(help="Draw utility against the strongest attack to this .svg file.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the comparison to this page.")] = None,
    as_json: Json = False,
) -> None:
    """Compare runs: claimed and audited epsilon, strongest attack, utility.

    The table also shows the popularity controls.
    """
    if plot is not None and plot.suffix != ".svg":
        raise ConfigurationError(f"--plot: expected a file that ends in .svg, got {plot}")
    comparison = compare_runs(runs)
    for path in (plot, html):
        if path is not None:
            make_folder(path.parent)
    if plot is not None:
        write_atomically(plot, standalone(draw_plane(comparison), comparison.figure.alt).encode())
    if html is not None:
        write_atomically(html, render_comparison(comparison).encode())
    if as_json:
        print_json(comparison.as_dict())
        return
    _show(comparison)
    for path in (plot, html):
        if path is not None:
            say(f"Written: {path}")


def _show(comparison: Comparison) -> None:
    console = stdout()
    rows = [_cells(run) for run in comparison.runs]
    blank = ("",) * 5
    for control in comparison.controls:
        sides = (numbers.share(control.tail), numbers.share(control.head), numbers.share(control.both))
        rows.append((control.name, "control", *blank, *sides, ""))
    console.print(grid("Runs side by side", HEADER, rows, words=(0, 1, 4)))
    for note in comparison.notes:
        print_line(f"- {note}")


def _cells(run: ComparedRun) -> tuple[str, ...]:
    shown = (
        "not tested" if run.bound is None else f"{numbers.at_least(run.bound)} of {numbers.at_least(run.ceiling or 0)}"
    )
    found = f"{run.attack}, {run.adversary} ({run.design})" if run.auc else "not tested"
    return (
        f"{run.number}. {run.name}",
        run.defence,
        "nothing" if run.epsilon is None else numbers.epsilon(run.epsilon),
        shown,
        found,
        "" if run.auc is None else f"{run.auc.value:.3f}",
        "" if run.tpr is None or run.tpr.value is None else f"{run.tpr.value:.3f}@{100 * run.tpr.fpr:g}%",
        numbers.share(run.tail),
        numbers.share(run.head),
        numbers.share(run.both),
        "none" if run.gain is None else numbers.signed(run.gain),
    )
