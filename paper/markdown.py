"""The reproduction as Markdown: for the documentation, and for reading in a repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedkge.base.numbers import count, epsilon
from paper.claims import Claim
from paper.document import Reproduction
from paper.links import Links, anchor, named
from paper.names import data_name, defence_name, family_name, model_name, setting_name, short
from paper.panels import Figures

PICTURES = "figures"


def markdown_reproduction(document: Reproduction, figures: Mapping[str, Figures], links: Links | None = None) -> str:
    """The whole page, to stand beside the folders of figures and cells; the same document gives the same bytes."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (heavy)

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 (Markdown)
    )
    made.filters.update(
        short=short,
        epsilon=epsilon,
        count=count,
        data=data_name,
        model=model_name,
        family=family_name,
        defence=defence_name,
        setting=setting_name,
        cell=lambda text: text.replace("|", "\\|"),
    )
    text = made.get_template("index.md").render(
        document=document,
        head=document.head,
        duration=duration(document.head.hours),
        tally=tally(document),
        figures=figures,
        folder=PICTURES,
        places=tuple(dict.fromkeys((row.data, row.model) for row in document.utility.rows)),
        evidence=lambda claim: _evidence(claim, document, links or Links()),
    )
    return text.rstrip() + "\n"


def duration(hours: float) -> str:
    """As people say it.

    >>> duration(9.24), duration(0.2)
    ('9.2 hours', '12 minutes')
    """
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"


def tally(document: Reproduction) -> str:
    """How many claims have which answer."""
    words = {"holds": "hold", "does not hold": "do not hold", "not run yet": "are not run yet"}
    return ", ".join(f"{count} {words.get(answer, answer)}" for answer, count in document.counts.items() if count)


def _evidence(claim: Claim, document: Reproduction, links: Links) -> str:
    name = named(claim.evidence)
    if "/" not in claim.evidence:
        titles = {text.part: text.title for text in document.texts}
        return f"[{name}](#{anchor(titles.get(claim.evidence, 'Method'))})"
    link = links.to(claim.evidence)
    return f"[{name}]({link})" if link else f"`{name}`"
