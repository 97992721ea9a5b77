"""From a matplotlib figure to SVG that is the same bytes every time, and fits light and dark pages.

Figures are drawn in stand-in colours, which become CSS variables inside the page (it sets them for light and for dark)
or middle tones in a file of its own. Text stays text, in the reader's font.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GRID, ZONE, LIMIT = "#000001", "#000002", "#000003", "#000004", "#000005"
SERIES = ("#000011", "#000012", "#000013", "#000014", "#000015")
DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
"""Line styles beside colours, so that nothing hangs on colour alone."""

_TONES = {
    INK: ("ink", "#767676"),
    MUTED: ("muted", "#767676"),
    GRID: ("rule", "#9a9a9a"),
    ZONE: ("zone", "#9a9a9a"),
    LIMIT: ("limit", "#c0504d"),
    SERIES[0]: ("series-1", "#3b7dc4"),
    SERIES[1]: ("series-2", "#c4661f"),
    SERIES[2]: ("series-3", "#2e8b6f"),
    SERIES[3]: ("series-4", "#9a5fb4"),
    SERIES[4]: ("series-5", "#8a7a1e"),
}
"""Each stand-in: the page's variable, and a tone that can be read on white and on black."""

JOINS = 'stroke-linejoin="round" stroke-linecap="butt"'

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "path.simplify_threshold": 0.2,
}


def new_figure(width: float = 4.9, height: float = 3.7) -> Figure:
    """An empty transparent figure, in inches; draw on it inside `matplotlib.rc_context(SETTINGS)`."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (heavy)

    return Figure(figsize=(width, height), facecolor="none", layout="constrained")


def to_svg(figure: Figure, name: str) -> str:
    """The figure's SVG with stand-in colours; every id starts with `name`, so that a page can hold several."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)

    stream = io.StringIO()
    with mpl.rc_context({**SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the reader's font has what matplotlib's lacks
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"(\bid=\"|url\(#|href=\"#)", rf"\g<1>{name}-", text)
    text = re.sub(r"(font(-family)?): ([\d.]+px )?'DejaVu Sans'[^;\"]*", _without_family, text)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL).replace("<svg", f"<svg {JOINS}", 1)
    text = re.sub(r' (d|x|y|transform|width|height)="[^"]*"', _shorter, text)
    text = re.sub(r"\n\s*", "\n", text)
    return text.strip()


def _shorter(found: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\1", found[0])


def _without_family(found: re.Match[str]) -> str:
    return f"font-size: {found[3].strip()}" if found[3] else "font-family: inherit"


def inline(svg: str, label: str) -> str:
    """For a page: scales with it, has its colours and an alternative text."""
    for stand_in, (variable, _) in _TONES.items():
        svg = svg.replace(stand_in, f"var(--{variable})")
    head = re.sub(r' (width|height|version|xmlns(:xlink)?)="[^"]*"', "", svg[: svg.index(">")])
    body = svg[svg.index(">") :].replace("xlink:href", "href")
    return f'{head} role="img" aria-label={quoteattr(label)}{body}'


def standalone(svg: str, label: str) -> str:
    """For a file of its own, on a white or a black ground."""
    for stand_in, (_, tone) in _TONES.items():
        svg = svg.replace(stand_in, tone)
    facts = f'<svg role="img" aria-label={quoteattr(label)} font-family="sans-serif"'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg.replace("<svg", facts, 1) + "\n"
