"""The reproduction as Markdown: for the documentation, and for reading in a repository."""

from __future__ import annotations

from collections.abc import Mapping

from paper.claims import Claim
from paper.document import Reproduction
from paper.links import Links, anchor, named
from paper.markdown_tables import attack_tables, reached_table, table, utility_tables, worth_table
from paper.names import short
from paper.panels import Figures
from paper.settings import PARTS
from paper.texts import PartText

PICTURES = "figures"


def markdown_reproduction(document: Reproduction, figures: Mapping[str, Figures], links: Links | None = None) -> str:
    """The whole page, to stand beside the folders of figures and cells; the same document gives the same bytes."""
    lines = [*_head(document)]
    for part in PARTS:
        text = document.text(part)
        lines += [f"## {text.title}", "", f"{text.there} of {text.wanted} cells have been run.", ""]
        if not text.there:
            lines += [f"There is nothing to show yet: `fedkge reproduce {part}`.", ""]
        lines += [f"{sentence}\n" for sentence in text.summary]
        lines += _body(part, document, figures) if text.there else []
        lines += _after(text)
    lines += _claims(document, links or Links())
    return "\n".join(lines).rstrip() + "\n"


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


def _head(document: Reproduction) -> list[str]:
    head = document.head
    lines = [
        "# The paper reproduced",
        "",
        "Made by `fedkge reproduce`; do not edit. The paper is “Quantifying and Defending against Privacy Threats on "
        "Federated Knowledge Graph Embedding” (WWW 2023). The same [as one page](reproduction.html), with all "
        "numbers, and [as JSON](reproduction.json).",
        "",
    ]
    if head.quick:
        lines += [
            f"**The quick look**: sub-graphs of the {head.entities:,} most frequent entities, few rounds, one seed. It "
            "decides nothing about the paper; `fedkge reproduce all --full` does.",
            "",
        ]
    return [
        *lines,
        f"{head.there} of {head.wanted} cells, {head.federations} federations, {duration(head.hours)} of computation; "
        f"seeds {', '.join(map(str, head.seeds))}; fedkge {', '.join(head.versions) or head.version}.",
        f"Of {len(document.claims)} claims {tally(document)} ([all of them](#every-claim-of-the-paper)).",
        "",
        "**As published**: batch 64, the paper's mechanism, accountant and constants; tails alone, of names that were "
        "trained on; an attack's best round, threshold chosen on the targets. None of it has a privacy guarantee. "
        "**Sound**: mechanism and epsilon that are proved; tails and heads of all test triples; attacks at the last "
        "round with AUC, TPR at 1 % FPR and F1 at a calibrated threshold. Brackets hold 95 % intervals. "
        f"Calling every target a member has an F1 of {short(document.attacks.floor)}.",
        "",
    ]


def _body(part: str, document: Reproduction, figures: Mapping[str, Figures]) -> list[str]:
    if part == "table-attacks":
        return [*attack_tables(document), *worth_table(document.attacks.worth)]
    if part == "table-utility":
        return [*reached_table(document), *utility_tables(document)]
    lines = []
    if figures[part].groups:
        for panel in figures[part].panels:
            lines += [f"![{panel.alt}]({PICTURES}/{panel.name}.svg)", ""]
    return lines + (worth_table(document.rounds.worth) if part == "figure-rounds" else [])


def _after(text: PartText) -> list[str]:
    lines = []
    kinds = (("Holds", text.holds), ("Does not hold", text.fails), ("Cannot be tested", text.untested))
    for kind, claims in (*kinds, ("Not run yet", text.pending)):
        if claims:
            lines += [f"**{kind}**", ""]
            lines += [f"- {claim.says}" + (f" ({claim.brief})" if claim.brief else "") for claim in claims]
            lines.append("")
    return [
        *lines,
        "**What the paper leaves open, and what was chosen**",
        "",
        *(f"- {one}" for one in text.choices),
        "",
    ]


def _claims(document: Reproduction, links: Links) -> list[str]:
    rows = [
        [claim.where, claim.says, f"**{claim.answer}**", claim.reason, _evidence(claim, document, links)]
        for claim in document.claims
    ]
    lines = [
        "## Every claim of the paper",
        "",
        *table(["where", "the paper says, in our words", "answer", "why", "evidence"], rows, 5),
    ]
    commands = ", ".join(f"`{command}`" for command in document.head.commands) or "nothing has been run"
    return [
        *lines,
        "## Method",
        "",
        f"Commands: {commands}. Settings: `paper/parts/`, one file per part.",
        "",
    ]


def _evidence(claim: Claim, document: Reproduction, links: Links) -> str:
    name = named(claim.evidence)
    if "/" not in claim.evidence:
        titles = {text.part: text.title for text in document.texts}
        return f"[{name}](#{anchor(titles.get(claim.evidence, 'Method'))})"
    link = links.to(claim.evidence)
    return f"[{name}]({link})" if link else f"`{name}`"
