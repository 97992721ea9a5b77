"""The tables of the reproduction in Markdown: attacks, what federations are worth, what is reached, utility."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedkge.report.numbers import epsilon
from paper.document import Reproduction
from paper.names import data_name, defence_name, family_name, model_name, setting_name, short
from paper.points import Point
from paper.table_attacks import AttackRow
from paper.table_utility import PublishedUtility, SoundUtility, UtilityRow
from paper.worth import Mean, Worth

NOT_RUN = "not run"


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


def _linked(text: str, file: str) -> str:
    return f"[{text}]({file})"


def _form(point: Point | None) -> str:
    return f"{short(point.best_f1)} `{point.attack}`, round {point.round}" if point else "none"


def attack_tables(document: Reproduction) -> list[str]:
    """Table 1, one table per data set; an attack leads to its cell."""
    lines = []
    for data in dict.fromkeys(row.data for row in document.attacks.rows):
        rows = [_attack(row) for row in document.attacks.rows if row.data == data]
        floor = short(document.attacks.floor)
        rows.append(["every target a member", "", floor, floor, floor, ".500", ".010", ".500"])
        head = ["attack", "paper", "printed formula", "best form", "F1, calibrated", "AUC", "TPR at 1 % FPR"]
        lines += [f"### {data_name(data)}: attacks", "", *table([*head, "AUC, held out"], rows)]
    return lines


def _attack(row: AttackRow) -> list[str]:
    name = f"{model_name(row.model)}, {family_name(row.family)}"
    paper = short(row.paper) if row.paper is not None else ""
    if row.best is None or row.last is None:
        return [name, paper, *["does not fit" if row.measured else NOT_RUN] * 6]
    tpr, strict = row.last.tpr, row.strict
    rate = f"{short(tpr.value)} [{short(tpr.low)}, {short(tpr.high)}]" if tpr and tpr.value is not None else "too few"
    return [
        _linked(name, row.file),
        paper,
        _form(row.printed) if row.printed else "",
        _form(row.best),
        f"{short(row.last.calibrated_f1)} `{row.last.attack}`",
        f"{short(row.last.auc.value)} [{short(row.last.auc.low)}, {short(row.last.auc.high)}]",
        rate,
        f"{short(strict.auc.value)} [{short(strict.auc.low)}, {short(strict.auc.high)}]" if strict else "not played",
    ]


def worth_table(rows: Sequence[Worth]) -> list[str]:
    """Attacked federations beside counting."""

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


def reached_table(document: Reproduction) -> list[str]:
    """The paper's best numbers beside ours; nothing where the settings hold none."""
    rows = [
        [
            f"{model_name(one.model)}, {data_name(one.data)}, {'defended' if one.defended else 'undefended'}",
            f"{short(one.paper)} ({setting_name(one.paper_setting)})",
            NOT_RUN if one.ours is None else f"{short(one.ours)} ({setting_name(one.ours_setting)})",
            NOT_RUN if one.popularity is None else short(one.popularity),
            NOT_RUN if one.private_popularity is None else short(one.private_popularity),
        ]
        for one in document.utility.reached
    ]
    head = ["tail MRR, ranked as in the paper", "paper", "here", "popularity", "popularity, ε 1"]
    return ["### Is the paper reached?", "", *table(head, rows)] if rows else []


def utility_tables(document: Reproduction) -> list[str]:
    """Table 2, one table per data set and model."""
    lines = []
    for data, model in dict.fromkeys((row.data, row.model) for row in document.utility.rows):
        rows = [_setting(row) for row in document.utility.rows if (row.data, row.model) == (data, model)]
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


def _setting(row: UtilityRow) -> list[str]:
    paper = row.paper
    return [
        defence_name(row.defence, row.epsilon),
        " / ".join(map(short, (paper.mrr, paper.hits_at_1, paper.hits_at_10))) if paper else "",
        *(["", ""] if "published" in row.absent else _as_published(row.published, row.epsilon)),
        *(["", ""] if "sound" in row.absent else _as_sound(row.sound)),
    ]


def _as_published(one: PublishedUtility | None, budget: float) -> list[str]:
    if one is None:
        return [NOT_RUN, NOT_RUN]
    if one.ranked is None:
        return ["no round", ""]
    ranks = " / ".join(map(short, (one.ranked.mrr, one.ranked.hits_at_1, one.ranked.hits_at_10)))
    spent = f"{epsilon(one.spent_all_orders)} ({epsilon(one.spent)})" if budget else "none"
    return [_linked(ranks, one.file) + ("" if one.exhausted else " †"), spent]


def _as_sound(one: SoundUtility | None) -> list[str]:
    if one is None:
        return [NOT_RUN, NOT_RUN]
    if one.sides is None:
        return ["no round", ""]
    text = f"{short(one.sides.tail.value)} / {short(one.sides.head.value)} / {_mean(one.sides.both)}"
    return [_linked(text, one.files[0]), epsilon(one.spent) if one.spent is not None else "none"]


def _mean(one: Mean) -> str:
    return short(one.value) if one.low is None else f"{short(one.value)} ({short(one.low)} to {short(one.high)})"
