"""Small pictures that a page can put side by side, with one legend for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fedkge.report.svg import LIMIT, SETTINGS, new_figure, to_svg
from paper.points import FLOOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 3.7, 2.75
DOTTED, DASHED = (0, (1.5, 1.5)), (0, (4, 3))
Style: TypeAlias = dict[str, Any]
Entry: TypeAlias = tuple[str, Style]


@dataclass(frozen=True, slots=True)
class Panel:
    """One small picture in stand-in colours, with its name, heading and alternative text."""

    name: str
    title: str
    alt: str
    svg: str


@dataclass(frozen=True, slots=True)
class Group:
    """Panels that belong together, such as the attacks on one model."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """A part's legend and its groups; without groups there is nothing to show yet."""

    legend: Panel | None
    groups: tuple[Group, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All of them, the legend first."""
        found = tuple(panel for group in self.groups for panel in group.panels)
        return ((self.legend, *found) if self.legend else found) if found else ()


def panel(name: str, title: str, alt: str, paint: Callable[[Axes], None], labels: tuple[str, str]) -> Panel:
    """Draw one panel."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)

    with mpl.rc_context({**SETTINGS, "font.size": 9.0}):
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.add_subplot(facecolor="none")
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.grid(True)
        axes.set_axisbelow(True)
        paint(axes)
        return Panel(name, title, alt, to_svg(figure, name))


def legend(name: str, entries: Sequence[Entry]) -> Panel:
    """What lines and marks mean, as a picture of its own."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)
    from matplotlib.lines import Line2D  # noqa: PLC0415

    with mpl.rc_context({**SETTINGS, "legend.fontsize": 9.0}):
        rows = -(-len(entries) // 3)
        figure = new_figure(7.4, 0.12 + 0.21 * rows)
        handles = [Line2D([], [], label=text, **style) for text, style in entries]
        figure.legend(handles=handles, loc="center left", ncols=min(3, len(entries)), handlelength=3, columnspacing=1.6)
        return Panel(name, "Legend", "Legend: " + "; ".join(text for text, _ in entries), to_svg(figure, name))


def floor_line(axes: Axes) -> None:
    """F1 of calling every target a member."""
    axes.axhline(FLOOR, color=LIMIT, linestyle=DASHED, linewidth=1.1)


FLOOR_ENTRY: Entry = ("every target a member: .667", {"color": LIMIT, "linestyle": DASHED, "linewidth": 1.1})
