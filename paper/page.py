"""The reproduction as one HTML page; with Markdown, JSON and figures in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.report.page import environment
from fedkge.report.svg import inline, standalone
from fedkge.store.durable_files import make_folder, write_atomically
from paper.cells import read_cells
from paper.document import Reproduction, gather
from paper.links import Links, links_from, named
from paper.markdown import PICTURES, duration, markdown_reproduction, tally
from paper.names import COLUMNS, data_name, defence_name, family_name, model_name, short
from paper.panels import Figures, Panel
from paper.points import CLOSE
from paper.settings import Settings

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE, TEXT, NUMBERS = "reproduction.html", "index.md", "reproduction.json"
TONES = {"holds": "holds", "does not hold": "fails", "cannot be tested": "open", "not run yet": "open"}


def maybe(value: float | None) -> str:
    """A share that may not have been measured.

    >>> maybe(None), maybe(0.25)
    ('not run', '.250')
    """
    return "not run" if value is None else short(value)


def change(value: float) -> str:
    """A difference of shares.

    >>> change(0.0123), change(-0.2)
    ('+.012', '-.200')
    """
    return ("+" if value >= 0 else "") + short(value)


FILTERS: dict[str, Callable[..., str]] = {
    "short": short,
    "maybe": maybe,
    "change": change,
    "data": data_name,
    "model": model_name,
    "defence": defence_name,
    "family": family_name,
    "column": COLUMNS.__getitem__,
}


def gather_reproduction(settings: Settings, results: Path) -> Reproduction:
    """The document of a folder of results."""
    return gather(settings, read_cells(results))


def render_reproduction(
    document: Reproduction, links: Links | None = None, figures: Mapping[str, Figures] | None = None
) -> str:
    """The page; the same document gives the same bytes."""
    from paper.drawing import draw_reproduction  # noqa: PLC0415 (heavy)

    made = environment(Path(__file__).parent / "templates")
    made.filters.update(FILTERS)
    return made.get_template("reproduction.html").render(
        document=document,
        counts=document.counts,
        tally=tally(document),
        duration=duration(document.head.hours),
        figures=draw_reproduction(document) if figures is None else figures,
        markup=_markup,
        linked=lambda evidence: linked(evidence, links or Links()),
        named=named,
        tones=TONES,
        close=CLOSE,
        least=min((row.epsilon for row in document.utility.rows if row.epsilon), default=0.0),
    )


def linked(evidence: str, links: Links) -> str:
    """Where evidence is found from the page; empty where it cannot be.

    >>> linked("table-attacks", Links()), linked("docs/threat-model.md", Links("results"))
    ('#table-attacks', '../docs/threat-model.md')
    """
    return links.to(evidence) if "/" in evidence else f"#{evidence}"


def _markup(panel: Panel) -> Markup:
    """Its texts were escaped by matplotlib, the alternative is by `inline`."""
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(inline(panel.svg, panel.alt))  # noqa: S704


def write_reproduction(document: Reproduction, folder: Path, links: Links | None = None) -> list[Path]:
    """Write page, Markdown, JSON and figures; give what was written. Links follow from where the folder is."""
    from paper.drawing import draw_reproduction  # noqa: PLC0415 (heavy)

    figures, links = draw_reproduction(document), links or links_from(folder)
    make_folder(folder / PICTURES)
    texts: dict[str, str] = {
        PAGE: render_reproduction(document, links, figures),
        TEXT: markdown_reproduction(document, figures, links),
        NUMBERS: document.to_json(),
        **_pictures(figures),
    }
    return _written(folder, texts)


def _pictures(figures: Mapping[str, Figures]) -> dict[str, str]:
    panels = [panel for part in figures.values() for panel in part.panels]
    return {f"{PICTURES}/{panel.name}.svg": standalone(panel.svg, panel.alt) for panel in panels}


def _written(folder: Path, texts: Mapping[str, Any]) -> list[Path]:
    paths = []
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
        paths.append(folder / name)
    return paths
