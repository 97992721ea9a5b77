"""The utility-defence plane: one point per run."""

from __future__ import annotations

from fedkge.report.comparison import PLANE, Comparison
from fedkge.report.svg import INK, LIMIT, MUTED, SERIES, SETTINGS, new_figure, to_svg
from fedkge.report.verdict import CHANCE


def draw_plane(comparison: Comparison) -> str:
    """The plane as SVG in stand-in colours; undefended runs are squares, defended ones circles."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)

    with mpl.rc_context(SETTINGS):
        figure = new_figure(height=4.2)
        axes = figure.add_subplot(facecolor="none")
        axes.set_xlabel("utility: MRR, both sides")
        axes.set_ylabel("strongest attack: AUC")
        axes.grid(True)
        axes.axhline(CHANCE, color=MUTED, linestyle=":", linewidth=1)
        for place, control in enumerate(comparison.controls):
            style = (0, (4, 3)) if place else "-"
            axes.axvline(control.both, color=LIMIT, linestyle=style, linewidth=1.1, label=control.name)
        for run in comparison.runs:
            if run.both is None or run.auc is None:
                continue
            spread = [[run.auc.value - run.auc.low], [run.auc.high - run.auc.value]]
            axes.errorbar(
                [run.both],
                [run.auc.value],
                yerr=spread,
                color=SERIES[0] if run.defended else SERIES[1],
                marker="o" if run.defended else "s",
                markersize=6,
                linewidth=1,
                capsize=2,
            )
            point = (run.both, run.auc.value)
            axes.annotate(str(run.number), point, (6, 5), textcoords="offset points", color=INK, fontweight="bold")
        bottom, top = axes.get_ylim()
        axes.set_ylim(min(0.4, bottom), max(1.02, top))
        axes.margins(x=0.12)
        if comparison.controls:
            figure.legend(loc="outside lower center", ncols=2)
        return to_svg(figure, PLANE)
