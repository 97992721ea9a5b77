"""A picture of attacks: ROC curves on logarithmic axes, and F1 and AUC by round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.audit.metrics import smallest_fpr
from fedkge.base.errors import ConfigurationError
from fedkge.experiments.outcomes import Outcome, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".svg", ".pdf", ".png")
STYLES = ("-", "--", ":", "-.")
"""One per adversary that comes, so that curves differ without colour too."""


def plot_outcomes(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw one row of three pictures per design: ROC of the last round (log-log), best F1 and AUC by round."""
    if path.suffix not in FORMATS:
        raise ConfigurationError(f"--plot: expected a name that ends with {', '.join(FORMATS)}, got {path}")
    from matplotlib import rc_context  # noqa: PLC0415 (heavy)

    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with rc_context({"svg.hashsalt": "fedkge", "font.size": 9}):  # the same outcomes give the same file
        draw(outcomes).savefig(path, metadata=metadata, bbox_inches="tight")


def draw(outcomes: Sequence[Outcome]) -> Figure:
    """The figure, without a window; at least one outcome is needed."""
    from matplotlib.figure import Figure as NewFigure  # noqa: PLC0415 (heavy)

    if not outcomes:
        raise ConfigurationError("--plot: there is nothing to draw, because no attack was run")
    designs = list(dict.fromkeys(outcome.design for outcome in outcomes))
    styles = _styles(outcomes)
    figure = NewFigure(figsize=(14, 4.2 * len(designs)), layout="constrained")
    axes = figure.subplots(len(designs), 3, squeeze=False)
    for row, design in zip(axes, designs, strict=True):
        found = [outcome for outcome in outcomes if outcome.design == design]
        _draw_roc(row[0], found, styles)
        _draw_rounds(row[1], found, styles, "best_f1", "best F1", found[0].metrics["floor_f1"])
        _draw_rounds(row[2], found, styles, "auc", "AUC", 0.5)
        row[0].set_title(f"Design {design}, last round")
        row[2].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=7, frameon=False)
    return figure


def _styles(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], dict[str, Any]]:
    """A colour per attack and a line style per adversary, the same in every picture."""
    pairs = dict.fromkeys((outcome.attack, outcome.adversary) for outcome in outcomes)
    adversaries = list(dict.fromkeys(adversary for _, adversary in pairs))
    return {
        (attack, adversary): {"color": f"C{number % 10}", "linestyle": STYLES[adversaries.index(adversary)]}
        | ({"alpha": 0.55} if number >= 10 else {})
        for number, (attack, adversary) in enumerate(pairs)
    }


def _draw_roc(axes: Axes, outcomes: Sequence[Outcome], styles: dict[tuple[str, str], dict[str, Any]]) -> None:
    non_members = max(outcome.metrics["non_members"] for outcome in outcomes)
    least = 1 / (2 * non_members)
    for (attack, adversary, _), group in grouped(outcomes).items():
        roc = group[-1].metrics["roc"]
        x, y = ([max(value, least) for value in roc[side]] for side in ("fpr", "tpr"))
        axes.plot(x, y, label=f"{attack} ({adversary})", linewidth=1.2, **styles[attack, adversary])
    axes.plot([least, 1], [least, 1], color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate("chance", (0.3, 0.3), xytext=(4, -10), textcoords="offset points", color="0.4")
    axes.axvspan(least, smallest_fpr(non_members), color="0.93", zorder=0)
    axes.annotate("too few\nnon-members", (least, least), xytext=(3, 40), textcoords="offset points", color="0.4")
    axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1))
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")


def _draw_rounds(
    axes: Axes,
    outcomes: Sequence[Outcome],
    styles: dict[tuple[str, str], dict[str, Any]],
    key: str,
    label: str,
    floor: float,
) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (heavy)

    for (attack, adversary, _), group in grouped(outcomes).items():
        rounds, values = [one.round for one in group], [one.metrics[key]["value"] for one in group]
        name = f"{attack} ({adversary})"
        axes.plot(rounds, values, marker="o", markersize=3, linewidth=1.2, label=name, **styles[attack, adversary])
    axes.axhline(floor, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
    words = 'guessing "member" every time' if key == "best_f1" else "chance"
    axes.annotate(
        words, (0.02, floor), xycoords=("axes fraction", "data"), xytext=(0, 2), color="0.4", textcoords="offset points"
    )
    axes.set(xlabel="round", ylabel=label)
    axes.set_ylim(top=1.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
