"""The measured cells as a page: tables in Markdown, the frontier as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.utility.attacked import REAL
from benchmarks.utility.figure import draw_frontier
from benchmarks.utility.rows import ROWS, is_private
from benchmarks.utility.shadowed import shadow_table
from benchmarks.utility.summary import Key, Record, counted, gain, kept, mean_of, plain
from fedkge.models import MODELS
from paper.grid import Lines

HEAD = """# What a budget buys
Written by `python -m benchmarks utility frontier`. Three clients by entity; filtered MRR of both sides on all test
triples, in brackets tails and heads; delta 1e-5; mean over seeds, with a 95 % interval (Student) where there are at
least two. Rows without a defence train with the options of `recommended`. A dash is a cell that has not been measured.

Measured before sizes were charged (since then a size costs epsilon 0.05 of each budget, 2 % of one below 2.5). On
codex-s, TransE, three seeds, that moves MRR from .347 to .345 at epsilon 8, and not at all (.236) at epsilon 1: less
than seeds do. Defended clients also number their names in alphabetical order now, so a seed draws other start values
from the same distribution.

![Epsilon against MRR](frontier.svg)
"""
MISSING = "–"  # noqa: RUF001
TUNING_HEAD = """# Options that were tried
Written by `python -m benchmarks utility tune`. Three clients by entity; filtered MRR of both sides on validation
triples.
"""


def write_page(store: Lines, kind: str) -> None:
    """README.md, and the picture where there is a frontier, beside the cells."""
    records = list(store.cells())
    store.folder.mkdir(parents=True, exist_ok=True)
    if kind == "tune":
        text = "\n".join([TUNING_HEAD, *_tuned(records)])
    else:
        groups = plain(records)
        budgets = sorted({epsilon for *_, epsilon in groups if epsilon})
        names = sorted({data for data, *_ in groups})
        parts = [line for data in names for line in _data_set(groups, data, budgets)]
        text = "\n".join([HEAD, *parts, *_attacks(records), *shadow_table(records)])
        if groups:
            draw_frontier(groups, store.folder / "frontier.svg")
    (store.folder / "README.md").write_text(text + "\n", encoding="utf-8")


def _data_set(groups: Mapping[Key, Sequence[Record]], data: str, budgets: Sequence[float]) -> Iterator[str]:
    yield f"## {data}"
    yield "| | no budget | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in budgets) + " |"
    yield "|---|" + "---:|" * (len(budgets) + 1)
    for model in MODELS:
        for row in ROWS:
            found = [groups.get((data, model, row, epsilon)) for epsilon in (0.0, *budgets)]
            if any(found):
                yield f"| {model}, `{row}` | " + " | ".join(_cell(records) for records in found) + " |"
    counts = [counted(groups, data, epsilon) for epsilon in (0.0, *budgets)]
    yield "| popularity, same epsilon | " + " | ".join(mean.text() if mean else MISSING for mean in counts) + " |"
    for model in MODELS:
        yield from _compared(groups, data, model, budgets)
    yield ""


def _compared(groups: Mapping[Key, Sequence[Record]], data: str, model: str, budgets: Sequence[float]) -> Iterator[str]:
    """Seed by seed: what a private row has more than counting, and what it keeps of no defence."""
    whole = groups.get((data, model, "none", 0.0), ())
    for row in filter(is_private, ROWS):
        found = [groups.get((data, model, row, epsilon), ()) for epsilon in budgets]
        if not any(found):
            continue
        gains = [gain(records).text("+") if records else MISSING for records in found]
        parts = [kept(records, whole) for records in found]
        shares = [f"{100 * part.value:.0f} %" if part else MISSING for part in parts]
        yield f"| {model}, `{row}` less popularity | | {' | '.join(gains)} |"
        yield f"| {model}, `{row}` as a part of `none` | | {' | '.join(shares)} |"


def _cell(records: Sequence[Record] | None) -> str:
    if not records:
        return MISSING
    sides = ", ".join(f"{mean_of(records, side).value:.3f}".removeprefix("0") for side in ("tail", "head"))
    return f"{mean_of(records).text()} ({sides})"


def _attacks(records: Sequence[Record]) -> Iterator[str]:
    attacked = [record for record in records if "outcomes" in record and record["canaries"] != REAL]
    if not attacked:
        return
    yield "## Attacks"
    yield "The AUC of the strongest attack after the last round, with its 95 % interval; a coin has .500. On shared"
    yield "canaries all attacks are played; on likely ones, which a copy asks about, the server's, and an audit.\n"
    yield "| cell | canaries | on canaries (C) | on real triples (B) | epsilon at least, by audit | MRR |"
    yield "|---|---|---|---|---|---:|"
    for record in sorted(attacked, key=lambda record: str(record["cell"])):
        name = f"{record['data']}, {record['model']}, `{record['row']}`, epsilon {record['epsilon']:g}"
        parts = [record["canaries"], *(_strongest(record, design) for design in ("C", "B")), _audited(record)]
        yield f"| {name} | {' | '.join(parts)} | {record['test']['both']:.3f} |"


def _audited(record: Record) -> str:
    if "audit" not in record:
        return MISSING
    audit = record["audit"]
    claimed = f"claimed {audit['claim']['epsilon']:.2f}" if audit["claim"] else "nothing claimed"
    return f"{audit['bound']:.2f} ({claimed}; {audit['asked'] or 0:,} canaries asked about)"


def _strongest(record: Record, design: str) -> str:
    rows = [row for row in record["outcomes"] if row["design"] == design]
    if not rows:
        return MISSING
    best = max(rows, key=lambda row: row["auc"]["value"])
    auc = best["auc"]
    return f"{best['attack']} {auc['value']:.3f} ({auc['low']:.3f} to {auc['high']:.3f})"


def _tuned(records: Sequence[Record]) -> Iterator[str]:
    yield "| data | model | epsilon | options | MRR |\n|---|---|---:|---|---:|"
    for record in sorted(records, key=lambda one: (one["data"], one["model"], one["epsilon"], str(one["options"]))):
        chosen = ", ".join(f"{key} {value}" for key, value in record["options"].items()) or "the defaults then"
        where = f"{record['data']} | {record['model']}, `{record['row']}` | {record['epsilon']:g}"
        yield f"| {where} | {chosen} | {record['validation']['both']:.4f} |"
