"""The reproduction as Markdown: for the documentation, and for reading in a repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedkge.report.numbers import epsilon, short
from fedkge.report.panels import Figures
from fedkge.reproduction.claims import Claim
from fedkge.reproduction.document import Reproduction
from fedkge.reproduction.names import FAMILIES, data_name, defence_name, model_name
from fedkge.reproduction.points import Point
from fedkge.reproduction.settings import PARTS
from fedkge.reproduction.table_attacks import AttackRow
from fedkge.reproduction.table_utility import PublishedUtility, SoundUtility, UtilityRow
from fedkge.reproduction.texts import PartText
from fedkge.reproduction.worth import Mean, Worth

NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the page finds pictures, the repository's root, cells and documentation; empty: it does not link there."""

    pictures: str
    root: str
    cells: str
    docs: str


def markdown_reproduction(
    document: Reproduction,
    figures: Mapping[str, Figures],
    *,
    pictures: str,
    root: str = "",
    cells: str = "",
    docs: str = "",
) -> str:
    """The whole page; the same document gives the same bytes."""
    places = Places(pictures, root, cells, docs)
    lines = [*_head(document)]
    for part in PARTS:
        text = document.text(part)
        lines += [f"## {text.title}", "", f"{text.there} of {text.wanted} cells have been run.", ""]
        if not text.there:
            lines += [f"There is nothing to show yet: `fedkge reproduce {part}`.", ""]
        lines += [f"{sentence}\n" for sentence in text.summary]
        lines += _body(part, document, figures, places) if text.there else []
        lines += _after(text)
    lines += _claims(document, places)
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


def setting(name: str) -> str:
    """A setting as the paper calls it.

    >>> setting("dp-flames-adaptive, epsilon 16"), setting("sound")
    ('DP-FLames-Adp, epsilon 16', 'sound')
    """
    first, comma, rest = name.partition(",")
    return defence_name(first) + comma + rest


def named(evidence: str) -> str:
    """What a link to evidence is called.

    >>> named("table-attacks"), named("docs/proofs/ptr.md#the-step"), named("benchmarks/README.md")
    ('Table 1', 'proofs/ptr.md', 'benchmarks/README.md')
    """
    parts = {
        "table-attacks": "Table 1",
        "table-utility": "Table 2",
        "figure-rounds": "figure over rounds",
        "figure-defence": "figure after defence",
        "figure-tradeoff": "utility and defence",
        "method": "method",
    }
    return parts.get(evidence, evidence.partition("#")[0].removeprefix("docs/"))


def table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]], words: int = 1) -> list[str]:
    """A table; the first columns hold words, the others numbers.

    >>> print(*table(["model", "F1"], [["TransE", ".8|"]]), sep=chr(10))
    | model | F1 |
    |---|---:|
    | TransE | .8\\| |
    <BLANKLINE>
    """
    rule = ["---" if place < words else "---:" for place in range(len(head))]
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|", *body, ""]


def _head(document: Reproduction) -> list[str]:
    head = document.head
    lines = [
        "# The paper reproduced",
        "",
        "Made by `fedkge reproduce`; do not edit. The paper is “Quantifying and Defending against Privacy Threats on "
        "Federated Knowledge Graph Embedding” (WWW 2023).",
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


def _body(part: str, document: Reproduction, figures: Mapping[str, Figures], places: Places) -> list[str]:
    if part == "table-attacks":
        return [*_attacks(document, places), *_worth(document.attacks.worth)]
    if part == "table-utility":
        return [*_reached(document), *_utility(document, places)]
    lines = []
    if figures[part].groups:
        for panel in figures[part].panels:
            lines += [f"![{panel.alt}]({places.pictures}/{panel.name}.svg)", ""]
    return lines + (_worth(document.rounds.worth) if part == "figure-rounds" else [])


def _linked(text: str, file: str, places: Places) -> str:
    return f"[{text}]({places.cells.rstrip('/')}/{file})" if places.cells else text


def _form(point: Point | None) -> str:
    return f"{short(point.best_f1)} `{point.attack}`, round {point.round}" if point else "none"


def _attacks(document: Reproduction, places: Places) -> list[str]:
    lines = []
    for data in dict.fromkeys(row.data for row in document.attacks.rows):
        rows = [_attack(row, places) for row in document.attacks.rows if row.data == data]
        floor = short(document.attacks.floor)
        rows.append(["every target a member", "", floor, floor, floor, ".500", ".010", ".500"])
        head = ["attack", "paper", "printed formula", "best form", "F1, calibrated", "AUC", "TPR at 1 % FPR"]
        lines += [f"### {data_name(data)}: attacks", "", *table([*head, "AUC, held out"], rows)]
    return lines


def _attack(row: AttackRow, places: Places) -> list[str]:
    name = f"{model_name(row.model)}, {FAMILIES[row.family]}"
    paper = short(row.paper) if row.paper is not None else ""
    if row.best is None or row.last is None:
        return [name, paper, *["does not fit" if row.measured else NOT_RUN] * 6]
    tpr, strict = row.last.tpr, row.strict
    rate = f"{short(tpr.value)} [{short(tpr.low)}, {short(tpr.high)}]" if tpr and tpr.value is not None else "too few"
    return [
        _linked(name, row.file, places),
        paper,
        _form(row.printed),
        _form(row.best),
        f"{short(row.last.calibrated_f1)} `{row.last.attack}`",
        f"{short(row.last.auc.value)} [{short(row.last.auc.low)}, {short(row.last.auc.high)}]",
        rate,
        f"{short(strict.auc.value)} [{short(strict.auc.low)}, {short(strict.auc.high)}]" if strict else "not played",
    ]


def _worth(rows: Sequence[Worth]) -> list[str]:
    def shown(value: float | None) -> str:
        return NOT_RUN if value is None else short(value)

    head = [
        "MRR of the attacked federation",
        "tail, as published",
        "popularity",
        "ε 1",
        "both, sound",
        "popularity",
        "ε 1",
    ]
    body = [
        [
            f"{model_name(row.model)}, {data_name(row.data)}",
            *map(shown, (row.tail, row.popularity[0], row.private_popularity[0])),
            *map(shown, (row.both, row.popularity[1], row.private_popularity[1])),
        ]
        for row in rows
    ]
    return table(head, body)


def _reached(document: Reproduction) -> list[str]:
    rows = [
        [
            f"{model_name(one.model)}, {data_name(one.data)}, {'defended' if one.defended else 'undefended'}",
            f"{short(one.paper)} ({setting(one.paper_setting)})",
            NOT_RUN if one.ours is None else f"{short(one.ours)} ({setting(one.ours_setting)})",
            NOT_RUN if one.popularity is None else short(one.popularity),
            NOT_RUN if one.private_popularity is None else short(one.private_popularity),
        ]
        for one in document.utility.reached
    ]
    head = ["tail MRR, ranked as in the paper", "paper", "here", "popularity", "popularity, ε 1"]
    return ["### Is the paper reached?", "", *table(head, rows)]


def _utility(document: Reproduction, places: Places) -> list[str]:
    lines = []
    for data, model in dict.fromkeys((row.data, row.model) for row in document.utility.rows):
        rows = [_setting(row, places) for row in document.utility.rows if (row.data, row.model) == (data, model)]
        for control in document.utility.controls:
            if control.data == data:
                tail = control.published
                printed = " / ".join(map(short, (tail.mrr, tail.hits_at_1, tail.hits_at_10))) if tail else NOT_RUN
                sound = control.sound
                both = (
                    f"{short(sound.tail.value)} / {short(sound.head.value)} / {short(sound.both.value)}"
                    if sound
                    else NOT_RUN
                )
                rows.append([control.name, "", printed, "", both, ""])
        head = ["setting", "paper: MRR / Hits@1 / Hits@10", "as published", "ε", "sound: tail / head / both MRR", "ε"]
        lines += [f"### {data_name(data)}, {model_name(model)}: utility", "", *table(head, rows)]
    return lines


def _setting(row: UtilityRow, places: Places) -> list[str]:
    paper = row.paper
    return [
        defence_name(row.defence, row.epsilon),
        " / ".join(map(short, (paper.mrr, paper.hits_at_1, paper.hits_at_10))) if paper else "",
        *(["", ""] if "published" in row.absent else _as_published(row.published, row.epsilon, places)),
        *(["", ""] if "sound" in row.absent else _as_sound(row.sound, places)),
    ]


def _as_published(one: PublishedUtility | None, budget: float, places: Places) -> list[str]:
    if one is None:
        return [NOT_RUN, NOT_RUN]
    if one.ranked is None:
        return ["no round", ""]
    ranks = " / ".join(map(short, (one.ranked.mrr, one.ranked.hits_at_1, one.ranked.hits_at_10)))
    spent = f"{epsilon(one.spent_all_orders)} ({epsilon(one.spent)})" if budget else "none"
    return [_linked(ranks, one.file, places) + ("" if one.exhausted else " †"), spent]


def _as_sound(one: SoundUtility | None, places: Places) -> list[str]:
    if one is None:
        return [NOT_RUN, NOT_RUN]
    if one.sides is None:
        return ["no round", ""]
    text = f"{short(one.sides.tail.value)} / {short(one.sides.head.value)} / {_mean(one.sides.both)}"
    return [_linked(text, one.files[0], places), epsilon(one.spent) if one.spent is not None else "none"]


def _mean(one: Mean) -> str:
    return short(one.value) if one.low is None else f"{short(one.value)} ({short(one.low)} to {short(one.high)})"


def _after(text: PartText) -> list[str]:
    lines = []
    kinds = (("Holds", text.holds), ("Does not hold", text.fails), ("Cannot be tested", text.untested))
    for kind, claims in (*kinds, ("Not run yet", text.pending)):
        if claims:
            lines += [f"**{kind}**", ""]
            lines += [f"- “{claim.says}”" + (f": {claim.brief}" if claim.brief else "") for claim in claims]
            lines.append("")
    return [
        *lines,
        "**What the paper leaves open, and what was chosen**",
        "",
        *(f"- {one}" for one in text.choices),
        "",
    ]


def _claims(document: Reproduction, places: Places) -> list[str]:
    rows = [
        [claim.where, claim.says, f"**{claim.answer}**", claim.reason, _evidence(claim, document, places)]
        for claim in document.claims
    ]
    lines = [
        "## Every claim of the paper",
        "",
        *table(["where", "the paper says", "answer", "why", "evidence"], rows, 5),
    ]
    commands = ", ".join(f"`{command}`" for command in document.head.commands) or "nothing has been run"
    return [
        *lines,
        "## Method",
        "",
        f"Commands: {commands}. Settings: `benchmarks/reproduction/`, one file per part.",
        "",
    ]


def _evidence(claim: Claim, document: Reproduction, places: Places) -> str:
    name = named(claim.evidence)
    if "/" not in claim.evidence:
        titles = {text.part: text.title for text in document.texts}
        return f"[{name}](#{anchor(titles.get(claim.evidence, 'Method'))})"
    if places.docs and claim.evidence.startswith("docs/"):
        return f"[{name}]({claim.evidence.removeprefix('docs/')})"
    return f"[{name}]({places.root}/{claim.evidence})" if places.root else f"`{name}`"


def anchor(title: str) -> str:
    """Where a heading is found.

    >>> anchor("Table 1: F1-score of the attacks")
    'table-1-f1-score-of-the-attacks'
    """
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return "-".join(kept.split())
