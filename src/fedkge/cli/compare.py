"""`fedkge compare`: several runs side by side, defence by defence, epsilon by epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkge.base.errors import ConfigurationError
from fedkge.cli.tables import grid, print_json, say, stdout

if TYPE_CHECKING:
    from fedkge.report.comparison import ComparedRun, Comparison

EXAMPLE = "Example: fedkge compare runs/open runs/defended --html comparison.html"

HEADER = ("", "defence", "claimed", "shown", "strongest attack", "AUC", "TPR", "tail", "head", "both", "gain")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run directories.")],
    plot: Annotated[Path | None, typer.Option(help="The utility-defence plane, as an SVG file.")] = None,
    html: Annotated[Path | None, typer.Option(help="The comparison as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Show runs side by side: claimed and shown epsilon, the strongest attack, utility beside the controls."""
    from fedkge.report.comparison import compare as compare_runs  # noqa: PLC0415
    from fedkge.report.page import render_comparison  # noqa: PLC0415
    from fedkge.report.plane import draw_plane  # noqa: PLC0415
    from fedkge.report.svg import standalone  # noqa: PLC0415
    from fedkge.store.durable_files import make_folder, write_atomically  # noqa: PLC0415 (heavy)

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
    from fedkge.base.numbers import share  # noqa: PLC0415

    console = stdout()
    rows = [_cells(run) for run in comparison.runs]
    blank = ("",) * 5
    for control in comparison.controls:
        sides = (share(control.tail), share(control.head), share(control.both))
        rows.append((control.name, "control", *blank, *sides, ""))
    console.print(grid("Runs side by side", HEADER, rows, words=(0, 1, 4)))
    for note in comparison.notes:
        console.print(f"- {note}", markup=False, soft_wrap=True)


def _cells(run: ComparedRun) -> tuple[str, ...]:
    from fedkge.base import numbers  # noqa: PLC0415

    shown = (
        "not measured"
        if run.bound is None
        else f"{numbers.at_least(run.bound)} of {numbers.at_least(run.ceiling or 0)}"
    )
    found = f"{run.attack}, {run.adversary} ({run.design})" if run.auc else "not measured"
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
