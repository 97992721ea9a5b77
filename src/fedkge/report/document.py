"""The report as a value: everything that the page shows, typed and versioned; `report.json` is this and nothing else.

Numbers are those of the run's files, unrounded. The published schema (docs/reference/report.schema.json) is made from
these classes; a change that older readers would not understand raises `FORMAT`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from inspect import getdoc
from typing import Any, Literal, TypeAlias

from fedkge.accounting.posterior import GuessWorth
from fedkge.audit.metrics import Estimate, RateAtFpr
from fedkge.base.short_repr import short_repr

FORMAT = 3

Copy: TypeAlias = Literal["shareable", "for-owner"]
"""The shareable copy holds what is public or paid for. What else was computed from private triples is for the
owner (`fedkge.report.shareable`)."""
VerdictKind: TypeAlias = Literal[
    "claim contradicted",
    "leakage found",
    "no leakage found by these attacks",
    "not tested",
    "promise",
    "no promise",
]
"""A shareable copy has one of the last two: it says what was promised, not what was measured."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was trained."""

    name: str
    data: str
    model: str
    dimension: int
    clients: int
    strategy: str
    defence: str
    defended: bool
    """Whether its clients promise anything."""
    rounds: int
    victim: str
    adversary: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict, and how it was reached: `found` of `tests` intervals lie above `chance` after the correction."""

    kind: VerdictKind
    sentence: str
    remarks: tuple[str, ...]
    rule: str
    tests: int
    found: int
    chance: float
    level: float
    corrected_level: float


@dataclass(frozen=True, slots=True)
class ClientClaim:
    """What one client was promised, and what its ledger says it has spent; None if nothing bounds it.

    `guess` is what a guess about one of its triples is worth, at even odds; None if nothing is guaranteed.
    """

    client: str
    epsilon: float | None
    delta: float
    spent: float | None
    within: bool
    guess: GuessWorth | None


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """How much of a client's graph its noisy copy holds, estimated from released values alone.

    `true` is the expected number of true triples among those that the copy believes. `precision` is `true` divided by
    `believed` (None if nothing is believed), `share` is `true` divided by the client's public number of triples.
    """

    client: str
    believed: int
    true: float
    precision: float | None
    share: float
    sentence: str


@short_repr("client")
@dataclass(frozen=True, slots=True)
class Claim:
    """The whole promise; `clients` is empty if there is none.

    `epsilon` is what the victim has spent by its ledger: this is what the run claims. `promised` is its budget; None if
    spending was counted and not limited. `limit_tpr` is the highest rate that the claim allows at `limit_fpr`.
    `guessing` says in words what a guess about one triple is worth; clients with the same chances share a line.
    """

    mechanism: str
    accountant: str
    unit: str
    neighbours: str
    client: str
    clients: tuple[ClientClaim, ...]
    promised: float | None
    epsilon: float | None
    delta: float | None
    limit_fpr: float
    limit_tpr: float
    meaning: str
    guessing: tuple[str, ...]
    copies: tuple[HeldCopy, ...]
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    trusted: str
    released: tuple[str, ...]
    not_covered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """One finding of the audit: epsilon is at least `epsilon`, and this test could show at most `ceiling`.

    `gaussian` is the f-DP form of the same guesses, which holds only if the mechanism is Gaussian-like.
    """

    attack: str
    epsilon: float
    ceiling: float
    guesses: int
    right: int
    gaussian: float | None


@dataclass(frozen=True, slots=True)
class DesignFacts:
    """What the targets of a design are. Only `strict` designs count for the verdict; `because` says why or why not."""

    design: str
    members_are: str
    non_members_are: str
    strict: bool
    because: str
    members: int
    non_members: int
    smallest_fpr: float
    floor_f1: float


@dataclass(frozen=True, slots=True)
class AttackRow:
    """How one attack did after the last round that was attacked; `leaks` is None if the design does not count."""

    attack: str
    adversary: str
    design: str
    round: int
    auc: Estimate
    corrected_low: float | None
    leaks: bool | None
    tpr: tuple[RateAtFpr, ...]
    best_f1: float
    best_f1_of_any_round: float
    best_round: int
    calibrated_f1: float | None
    bound: Bound | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A ROC curve that the page draws."""

    attack: str
    adversary: str
    design: str
    round: int
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AttackSeries:
    """An attack's AUC by round."""

    attack: str
    adversary: str
    design: str
    rounds: tuple[int, ...]
    auc: tuple[Estimate, ...]


@short_repr()
@dataclass(frozen=True, slots=True)
class Attacks:
    """All attacks that were run; if there are none, `rows` is empty and `missing` says so."""

    missing: str
    level: float
    designs: tuple[DesignFacts, ...]
    rows: tuple[AttackRow, ...]
    curves: tuple[Curve, ...]
    by_round: tuple[AttackSeries, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The one-run audit; without one, `findings` is empty, `largest` is None and `missing` says so.

    All findings hold together at `confidence`: the chance of a false alarm was divided by their number.
    """

    missing: str
    round: int | None
    canaries: int
    inserted: int
    delta: float | None
    confidence: float | None
    alpha: float | None
    looks: int
    findings: tuple[Bound, ...]
    largest: Bound | None
    ceiling: float | None
    gaussian_holds: str
    coins: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spending:
    """The epsilon that a client had spent after each round, by its ledger."""

    client: str
    rounds: tuple[int, ...]
    epsilon: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class UtilityRow:
    """Filtered MRR on test; `kind` says whether it is this run, one of its clients, a control, or another run."""

    name: str
    kind: Literal["run", "client", "control", "beside"]
    triples: int
    tail: float
    head: float
    both: float
    hits_at_10: float
    note: str


@dataclass(frozen=True, slots=True)
class PaidFigure:
    """A client's mean reciprocal rank, released with noise and paid for with `epsilon` (docs/proofs/metrics.md).

    It is the mean over raw ranks of `split` among all names of the client, both sides. `triples` is the noisy number of
    these triples. `deviation` is about how far the noise moves `mrr`.
    """

    client: str
    split: str
    round: int
    epsilon: float
    mrr: float
    triples: int
    deviation: float


@dataclass(frozen=True, slots=True)
class Utility:
    """How well the model ranks, beside controls without a model; `gain` is over the noisy popularity control.

    `paid` may be passed on. Everything else is exact, and for the owner only.
    """

    missing: str
    round: int | None
    rows: tuple[UtilityRow, ...]
    gain: float | None
    sentence: str
    paid: tuple[PaidFigure, ...] = ()


@short_repr()
@dataclass(frozen=True, slots=True)
class ExposedTriple:
    """A real training triple, by name, and the attacks that found it."""

    head: str
    relation: str
    tail: str
    attacks: tuple[str, ...]


@short_repr()
@dataclass(frozen=True, slots=True)
class Exposed:
    """How many of the attacked triples are exposed, and which."""

    missing: str
    fpr: float
    attacked: int
    count: int
    triples: tuple[ExposedTriple, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Method:
    """How to repeat the run and the report."""

    seed: int | None
    targets_seed: int | None
    noise_seed: int | None
    seed_note: str
    versions: tuple[tuple[str, str], ...]
    configuration_hash: str
    configuration: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    """Hashes of the files that the owner's copy was made from. They depend on private data."""
    notice: str


@dataclass(frozen=True, slots=True)
class FigureText:
    """A figure's title, what it shows in words, and how to read it."""

    name: str
    title: str
    alt: str
    caption: str


@short_repr("copy")
@dataclass(frozen=True, slots=True)
class Document:
    """The whole report."""

    format: int
    copy: Copy
    run: RunFacts
    verdict: Verdict
    claim: Claim
    attacks: Attacks
    audit: Audit
    spending: tuple[Spending, ...]
    utility: Utility
    exposed: Exposed
    figures: tuple[FigureText, ...]
    method: Method
    limits: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """The text of `report.json`: one line per value, so that two reports can be compared line by line."""
        return json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `report.json`; no key may be added or missing.

    >>> json_schema()["required"][:3]
    ['format', 'copy', 'run']
    """
    from pydantic import TypeAdapter  # noqa: PLC0415 (only for whoever asks for the schema)

    schema = TypeAdapter(Document).json_schema(mode="serialization")
    for name, definition in {"Document": schema, **schema["$defs"]}.items():
        definition["description"] = getdoc(globals()[name])  # older versions of pydantic leave it out
        definition["additionalProperties"] = False
        definition["required"] = list(definition["properties"])
    schema["properties"]["format"]["const"] = FORMAT
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fedkge report",
        **{key: value for key, value in schema.items() if key != "title"},
    }
