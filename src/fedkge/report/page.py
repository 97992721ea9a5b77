"""The document as one HTML file: no script, nothing fetched, readable on a phone, on paper, in the dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.base import numbers
from fedkge.base.errors import UnavailableError
from fedkge.report.document import Document
from fedkge.report.svg import inline
from fedkge.report.verdict import strongest

if TYPE_CHECKING:
    from jinja2 import Environment

    from fedkge.report.comparison import Comparison

TONES = {
    "claim contradicted": "contradicted",
    "leakage found": "leakage",
    "no leakage found by these attacks": "none",
    "not tested": "unmeasured",
    "promise": "none",
    "no promise": "unmeasured",
}
HITS = 10
UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line ends, and what turns the direction of writing."""


def visible(text: str) -> str:
    r"""A name as a page may show it: what cannot be seen is written out (HTML is escaped by the template).

    >>> visible("two\nlines"), visible("日本 <b>")
    ('two\\nlines', '日本 <b>')
    """
    return UNSHOWN.sub(lambda found: repr(found[0])[1:-1], str(text))


def budget(value: float | None) -> str:
    """A budget, which may not have been set.

    >>> budget(None), budget(8.0)
    ('none was set', '8')
    """
    return "none was set" if value is None else numbers.epsilon(value)


FILTERS: dict[str, Callable[..., str]] = {
    **{
        name: getattr(numbers, name) for name in ("share", "signed", "percent", "epsilon", "at_least", "small", "count")
    },
    "visible": visible,
    "budget": budget,
}


def environment(*folders: Path) -> Environment:
    """Jinja with everything escaped, and every missing value an error; `folders` hold further templates."""
    from jinja2 import (  # noqa: PLC0415 (heavy)
        ChoiceLoader,
        Environment,
        FileSystemLoader,
        PackageLoader,
        StrictUndefined,
    )

    loader = ChoiceLoader([PackageLoader("fedkge.report"), FileSystemLoader(folders)])
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters.update(FILTERS)
    return made


def embedded(figures: dict[str, str], alternatives: dict[str, str]) -> dict[str, Any]:
    """Figures as markup; their texts were escaped by matplotlib, the alternatives are by `inline`."""
    from markupsafe import Markup  # noqa: PLC0415

    return {name: Markup(inline(svg, alternatives[name])) for name, svg in figures.items()}  # noqa: S704


def render(document: Document) -> str:
    """The page; the same document gives the same bytes."""
    from fedkge.report.figures import draw  # noqa: PLC0415 (heavy)

    alternatives = {text.name: text.alt for text in document.figures}
    return (
        environment()
        .get_template("report.html")
        .render(
            document=document,
            figures=embedded(draw(document), alternatives),
            tone=TONES[document.verdict.kind],
            strongest=strongest(document.attacks.rows),
            hits=HITS,
        )
    )


def pdf_writer() -> Callable[[str, Path], None]:
    """What writes a page on A4: WeasyPrint, which fedkge does not depend on; an error where it is not there."""
    try:
        html = import_module("weasyprint").HTML
    except (ImportError, OSError) as error:
        raise UnavailableError(
            f"--pdf needs WeasyPrint, which cannot be loaded ({error}): `pip install weasyprint` (and Pango), or open "
            "the HTML page in a browser and print it to a file"
        ) from error
    return lambda page, path: html(string=page, url_fetcher=_refuse).write_pdf(str(path))


def _refuse(address: str) -> Any:
    raise ValueError(f"a report fetches nothing, got {address}")


def render_comparison(comparison: Comparison) -> str:
    """Several runs on one page."""
    from fedkge.report.plane import draw_plane  # noqa: PLC0415 (heavy)

    text = comparison.figure
    figures = embedded({text.name: draw_plane(comparison)}, {text.name: text.alt})
    return environment().get_template("compare.html").render(comparison=comparison, figures=figures)
