"""Audit a run: how large must epsilon be at least, and does that fit what the run claims?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from fedkge.api.attacks import check_names
from fedkge.api.opening import RunLike, opened
from fedkge.attacks import ATTACKS
from fedkge.audit.bound import CONFIDENCE
from fedkge.base.errors import ConfigurationError, ContradictionError, LeakageError
from fedkge.base.tabular import Row, Tabular
from fedkge.configuration import Configuration, kebab
from fedkge.defences import chosen_defence, parse
from fedkge.experiments.experiment import Progress
from fedkge.experiments.recorded_audit import RunAudit, reach, release_names, run_audit
from fedkge.report.promise_words import fault_words
from fedkge.report.wording import asked_about
from fedkge.runs.strategies import strategy_of

DEFAULTS = {"canaries": 1000, "canary-source": "victim"}
"""What an audit sets where training has other defaults, unless it is told otherwise."""
RECORDED = 10
"""So many rounds are recorded, the last among them, unless the option `record` says otherwise."""


class Look(TypedDict, total=False):
    """How the coins will be looked at, fixed before anybody has."""

    attacks: Sequence[str]
    guesses: Sequence[int]
    confidence: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(Tabular):
    """What an audit found: `bound` is the least epsilon that the attacks prove, `claim` what the run's ledger says."""

    found: RunAudit

    shown: ClassVar[Mapping[str, str]] = {
        "attack": "attack",
        "adversary": "adversary",
        "guesses": "guesses",
        "right": "right",
        "epsilon_at_least": "epsilon at least",
        "at_most_shown": "could show",
    }

    @property
    def bound(self) -> float:
        """Epsilon is at least this, at the audit's confidence."""
        return self.found.result.bound

    @property
    def ceiling(self) -> float:
        """The largest bound that this audit could have shown."""
        return self.found.result.ceiling

    @property
    def claim(self) -> float | None:
        """The epsilon that the run's ledger says was spent; None where the run claims nothing."""
        return self.found.claim.epsilon if self.found.claim else None

    @property
    def contradicted(self) -> bool:
        """Whether the run leaks more than it claims."""
        return self.found.contradicted

    def check(self, limit: float | None = None) -> None:
        """Raise ContradictionError if the bound is above the run's claim, LeakageError if it is above `limit`."""
        if self.found.claim is not None and self.contradicted:
            claim = self.found.claim
            raise ContradictionError(
                f"claim contradicted: the run claims epsilon {claim.epsilon:.3f} at delta {claim.delta:g}, the audit "
                f"shows at least {self.bound:.3f}; do not release the model: the mechanism or its accounting is wrong"
            )
        if limit is not None and self.bound > limit:
            raise LeakageError(
                f"epsilon is at least {self.bound:.3f}, above the {limit:g} of --fail-above: train with a defence, "
                "or with a smaller budget"
            )

    def title(self) -> str:
        """The verdict and its numbers."""
        claims = "claims nothing" if self.claim is None else f"claims {self.claim:.3f}"
        return f"{self.found.verdict}: epsilon is at least {self.bound:.3f} (of {self.ceiling:.3f}); the run {claims}"

    def rows(self) -> list[Row]:
        """One row per attack and number of guesses."""
        return [
            {
                "attack": one.attack,
                "adversary": self.found.adversaries[one.attack],
                "scored": one.scored,
                "guesses": one.guesses,
                "right": one.right,
                "epsilon_at_least": one.bound,
                "at_most_shown": one.ceiling,
                "epsilon_if_gaussian": one.gaussian_bound,
            }
            for one in self.found.result.findings
        ]


def audit_run(
    run: RunLike,
    *,
    attacks: Sequence[str] = (),
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
    progress: Progress = lambda *_: None,
) -> Audit:
    """Show how large epsilon must be at least, from the canaries of a run.

    The run needs canaries with independent coins and a transcript, as `fedkge.audit` trains it. Fix `attacks` and
    `guesses` before you look at a result: the bound is corrected for their number.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> shards = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1), clients=2, seed=7)
    >>> options = {"canaries": 40, "canary_coins": "independent", "canary_source": "victim", "record": "all"}
    >>> with TemporaryDirectory() as folder:
    ...     run = fk.train(shards, rounds=2, dimension=8, negatives=8, out=f"{folder}/run", **options)
    ...     found = audit_run(run)
    >>> found.claim, found.bound <= found.ceiling
    (None, True)
    """
    return Audit(run_audit(opened(run), passive_attacks(attacks), guesses, confidence, progress))


def check_limit(
    configuration: Configuration,
    limit: float | None,
    attacks: Sequence[str] = (),
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
) -> None:
    """Refuse a limit that can never fail, and impossible guesses; all of this is known before training."""
    most = reach(configuration, attacks, guesses, confidence)
    if limit is not None and limit >= most:
        raise ConfigurationError(
            f"--fail-above {limit:g} could never fail: with {configuration.experiment.canaries:,} canaries this audit "
            f"can show epsilon {most:.2f} at most; train with more --canaries, name fewer attacks, or lower the limit"
        )


def check_strategy(configuration: Configuration, attacks: Sequence[str]) -> None:
    """Refuse, before training, a federation in which an audit's attacks have nothing to see."""
    seen_in_releases = attacks and set(attacks) <= set(release_names())
    if not strategy_of(configuration).exchanges_entities and not seen_in_releases:
        raise ConfigurationError(
            f"the attacks of an audit need shared entities, got strategy {configuration.federation.strategy!r}: leave "
            "--strategy out, or look at a noisy copy alone with --attack copy"
        )


def audited(given: Mapping[str, Any]) -> Configuration:
    """The training that an audit needs; under a research seed the coins derive from it, and canaries suit the defence.

    >>> audited({"rounds": 30}).experiment.record, audited({"seed": 7}).experiment.canary_coins
    ('3,6,9,12,15,18,21,24,27,30', 'seeded')
    """
    own = {kebab(key): value for key, value in given.items()}
    coins = "independent" if own.get("seed") is None else "seeded"
    values = {**DEFAULTS, "canary-coins": coins, **own}
    configuration = parse(values)
    if suited := chosen_defence(configuration).auditing.options:
        configuration = parse({**values, **suited, **own})
    if "record" in values and configuration.experiment.record != "none":
        return configuration
    step = max(1, configuration.training.rounds // RECORDED)
    rounds = sorted(range(configuration.training.rounds, 0, -step))[-RECORDED:]
    return configuration.updated(record=",".join(map(str, rounds)))


def passive_attacks(names: Sequence[str]) -> tuple[str, ...]:
    """The attacks that an audit was told to use; an active one is an error.

    >>> passive_attacks(["copy", "cip"])
    ('cip', 'copy')
    """
    chosen = check_names([name for name in names if name not in release_names()])
    if other := [name for name in chosen if name not in ATTACKS]:
        raise ConfigurationError(f"an audit uses passive attacks, got {', '.join(other)}; try `fedkge attack`")
    return (*chosen, *(name for name in release_names() if name in names))


def sentences(found: RunAudit) -> list[str]:
    """What the audit says, in words."""
    result, claim = found.result, found.claim
    sure = f"{100 * result.confidence:g} % confidence, corrected for {result.comparisons} looks at the coins"
    lines = [
        f"Epsilon is at least {result.bound:.3f} at delta {result.delta:g} ({sure}).",
        f"This audit could show at most {result.ceiling:.3f}: about anything above, it says nothing.",
    ]
    if result.gaussian_bound is not None:
        lines.append(f"If the mechanism is Gaussian-like, epsilon is at least {result.gaussian_bound:.3f}.")
    if found.asked is not None:
        lines.append(asked_about(found.asked, result.canaries))
    if claim is None:
        lines.append("The run claims nothing: its ledger is empty, so epsilon has no limit.")
    else:
        lines.append(f"The run claims epsilon {claim.epsilon:.3f} at delta {claim.delta:g} per {claim.unit}.")
        if claim.epsilon >= result.ceiling:
            lines.append("No result of this audit could have contradicted that: it takes more canaries.")
        if claim.faults:
            lines.append(f"NOT PRIVATE: {'; '.join(map(fault_words, claim.faults))}.")
        lines += claim.remarks
    return [*lines, f"Verdict: {found.verdict}."]
