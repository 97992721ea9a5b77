"""The frontier as a picture: epsilon against MRR, a column per data set, a line of panels per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility.rows import is_private
from benchmarks.utility.summary import Key, Mean, Record, counted, mean_of
from fedkge.models import MODELS

COLOURS = {"recommended": "#0072b2", "noisy-steps": "#009e73", "dpsgd": "#d55e00", "dp-flames": "#cc79a7"}
LEVELS = {"none": ("#000000", "-"), "isolated": ("#777777", "-.")}


def draw_frontier(groups: Mapping[Key, Sequence[Record]], path: Path) -> None:
    """Write the picture as SVG. Bands and bars are intervals over seeds."""
    from matplotlib import rc_context  # noqa: PLC0415 (heavy)
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = sorted({data for data, *_ in groups})
    models = [model for model in MODELS if any(model == key[1] for key in groups)]
    with rc_context({"svg.hashsalt": "frontier"}):
        figure = Figure(figsize=(2.9 * len(names) + 0.6, 2.3 * len(models) + 0.7), layout="constrained")
        grid = figure.subplots(len(models), len(names), squeeze=False, sharex=True, sharey="col")
        for line, model in zip(grid, models, strict=True):
            for axes, data in zip(line, names, strict=True):
                _panel(axes, groups, data, model)
                axes.set_title(f"{data}, {model}", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("epsilon")
        for line in grid:
            line[0].set_ylabel("MRR, both sides")
        labels: dict[str, Any] = {}
        for axes in grid.ravel():
            handles, names_of_handles = axes.get_legend_handles_labels()
            labels |= dict(zip(names_of_handles, handles, strict=True))
        figure.legend(labels.values(), labels.keys(), loc="outside upper center", ncols=4, fontsize=8, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _panel(axes: Any, groups: Mapping[Key, Sequence[Record]], data: str, model: str) -> None:
    mine = {key[2:]: records for key, records in groups.items() if key[:2] == (data, model)}
    for row, colour in COLOURS.items():
        points = {epsilon: mean_of(records) for (name, epsilon), records in mine.items() if name == row}
        _line(axes, points, row, colour, "-")
    budgets = sorted({epsilon for (row, epsilon) in mine if is_private(row)})
    counts = {epsilon: mean for epsilon in budgets if (mean := counted(groups, data, epsilon))}
    _line(axes, counts, "popularity, same epsilon", "#e69f00", "--")
    for row, (colour, style) in LEVELS.items():
        if records := mine.get((row, 0.0)):
            axes.axhline(mean_of(records).value, color=colour, linestyle=style, linewidth=1, label=row)
    if exact := counted(groups, data, 0.0):
        axes.axhline(exact.value, color="#e69f00", linestyle=":", linewidth=1, label="popularity, exact")
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def _line(axes: Any, points: Mapping[float, Mean], label: str, colour: str, style: str) -> None:
    if not points:
        return
    places = sorted(points)
    values = np.array([points[place].value for place in places])
    halves = np.nan_to_num(np.array([points[place].half for place in places]), posinf=0.0)
    axes.plot(places, values, style, marker=".", color=colour, label=label, linewidth=1.3)
    axes.fill_between(places, values - halves, values + halves, color=colour, alpha=0.2, linewidth=0)
