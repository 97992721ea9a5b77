"""Audit a recorded run: every passive attack scores the canaries after the last round, and is compared with the coins.

If the defence releases something that can be scored by itself (a noisy copy), the auditor scores that too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.deltas import USUAL_DELTA
from fedkge.attacks import ATTACKS, Attack, check, make_attack
from fedkge.attacks.cip import overlaps
from fedkge.attacks.structure import ends_known
from fedkge.audit.bound import CONFIDENCE, ceiling
from fedkge.audit.guesses import AuditResult, audit, check_guesses, corrected, default_guesses
from fedkge.base.errors import ConfigurationError
from fedkge.base.short_repr import short_repr
from fedkge.configuration import Configuration
from fedkge.defences import DEFENCES, chosen_defence
from fedkge.experiments.audited_release import audited_release, has_audited_release, in_victims_numbers
from fedkge.experiments.claim import LedgerClaim, claim_of
from fedkge.experiments.recorded_views import recorded_view, shard_of
from fedkge.experiments.targets import Targets, auxiliary_triples
from fedkge.experiments.targets.canaries import CANARIES
from fedkge.experiments.targets.files import read_targets
from fedkge.experiments.white_box import white_box_scores
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.runs.run import Run, scorer_of
from fedkge.runs.view import Adversary, View
from fedkge.store.durable_files import write_atomically
from fedkge.store.result_files import read_audit_file

RESULTS = "audit.json"
AUDITOR = "auditor"
"""Who sees the copy: nobody in a federation, but the promise holds against it too."""
AUXILIARY = 20
"""True triples of each relation that the server is given, as in `fedkge attack`."""

COINS = {
    "independent": "coins of the operating system",
    "seeded": "coins that follow from the seed: anyone who knows it knows them, so this is research and no evidence",
}

Progress = Callable[[str, int, int], None]


@short_repr("victim", "coins")
@dataclass(frozen=True, slots=True)
class RunAudit:
    """What the audit of a run found, beside what the run claims."""

    result: AuditResult
    claim: LedgerClaim | None
    victim: str
    adversaries: Mapping[str, str]
    """Whose view each attack used."""
    round: int
    coins: str
    plans: tuple[Mapping[str, Any], ...]
    """What this run was audited with, the newest last: more than one means that somebody has looked before."""
    asked: int | None = None
    """How many canaries a noisy copy was asked about; None where nobody was asked."""

    @property
    def contradicted(self) -> bool:
        """Whether the run leaks more than it claims, at the audit's confidence."""
        return self.claim is not None and self.result.bound > self.claim.epsilon

    @property
    def verdict(self) -> str:
        """The audit in a few words. It never says that a run is safe."""
        if self.contradicted:
            return "claim contradicted"
        return "leakage found" if self.result.bound > 0 else "no leakage found by these attacks"

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON; a claim of null is no claim at all."""
        return {
            "format": 1,
            "verdict": self.verdict,
            "claim": self.claim.record() if self.claim else None,
            "victim": self.victim,
            "round": self.round,
            "coins": self.coins,
            "asked": self.asked,
            **self.result.record(),
            "adversaries": dict(self.adversaries),
            "plans": [dict(plan) for plan in self.plans],
        }


def run_audit(
    run: Run,
    attacks: Sequence[str] = (),
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
    progress: Progress = lambda *_: None,
) -> RunAudit:
    """Audit a run that was trained with canaries and independent coins; the result is kept as audit.json.

    By default `attacks` are all passive ones that fit the model, except the paper's own formulas, and the scores of
    what the defence released; `guesses` are a tenth and a half of the canaries. Choose both before you see a result:
    alpha is divided by their number.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> shards = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1), clients=2, seed=7)
    >>> options = {"canaries": 40, "canary_coins": "independent", "canary_source": "victim", "record": "all"}
    >>> with TemporaryDirectory() as folder:
    ...     run = fk.train(shards, rounds=2, dimension=8, negatives=8, out=f"{folder}/run", **options)
    ...     found = run_audit(run)
    >>> found.result.canaries, found.claim, found.result.bound <= found.result.ceiling
    (40, None, True)
    """
    if run.directory is None:
        raise ConfigurationError("an audit needs a run directory: train with --out")
    canaries = _canaries(run)
    names = _names(run.configuration, attacks)
    if not attacks and not has_audited_release(run):  # a gathered run has no checkpoints
        names = tuple(name for name in names if name not in release_names())
    numbers = tuple(dict.fromkeys(guesses)) or default_guesses(len(canaries))
    claim = claim_of(run.directory, run.configuration.experiment.victim)
    delta = claim.delta if claim else run.configuration.privacy.delta or USUAL_DELTA
    scores, adversaries, last = _scores(run, canaries, names, progress)
    auditing = chosen_defence(run.configuration).auditing
    plan = {"attacks": list(names), "guesses": list(numbers), "confidence": confidence}
    found = RunAudit(
        result=audit(scores, canaries.members, delta, numbers, confidence, gaussian=auditing.gaussian),
        claim=claim,
        victim=run.configuration.experiment.victim,
        adversaries=adversaries,
        round=last,
        coins=run.configuration.experiment.canary_coins,
        plans=(*(earlier for earlier in _plans(run.directory) if earlier != plan), plan),
        asked=_asked(run, canaries),
    )
    write_atomically(run.directory / RESULTS, json.dumps(found.record(), indent=1).encode())
    return found


def release_names() -> tuple[str, ...]:
    """The names of scores that read what a defence released, of all defences.

    >>> release_names()
    ('copy',)
    """
    return tuple(dict.fromkeys(name for defence in DEFENCES.values() for name in defence.auditing.scores))


def fitting(configuration: Configuration) -> tuple[str, ...]:
    """The attacks of an audit: known before training, because each costs a share of alpha.

    >>> "upload-difference" in fitting(Configuration.of(model="distmult"))
    True
    """
    model = scorer_of(configuration).name
    suits = [attack for attack in ATTACKS.values() if model in (attack.needs.models or (model,))]
    return (
        *(attack.name for attack in suits if not attack.needs.published),
        *chosen_defence(configuration).auditing.scores,
    )


def reach(
    configuration: Configuration,
    attacks: Sequence[str] = (),
    guesses: Sequence[int] = (),
    confidence: float = CONFIDENCE,
) -> float:
    """The largest bound that an audit of such a run could show: known before training.

    >>> round(reach(Configuration.of(canaries=1000), ["upload-difference"], [500]), 2)
    5.09
    """
    numbers = tuple(dict.fromkeys(guesses)) or default_guesses(configuration.experiment.canaries)
    names = _names(configuration, attacks)
    for number in numbers:
        check_guesses(number, configuration.experiment.canaries)
    shared = corrected(confidence, len(numbers) * len(names))
    delta = configuration.privacy.delta or USUAL_DELTA
    return max(ceiling(number, configuration.experiment.canaries, delta, shared) for number in numbers)


def _names(configuration: Configuration, attacks: Sequence[str]) -> tuple[str, ...]:
    for name in set(attacks) & set(release_names()) - set(chosen_defence(configuration).auditing.scores):
        raise ConfigurationError(
            f"attack {name!r} reads a noisy copy, got the defence {configuration.privacy.defence!r}"
        )
    return tuple(dict.fromkeys(attacks)) or fitting(configuration)


def _canaries(run: Run) -> Targets:
    options = run.configuration
    if options.experiment.canaries == 0 or options.experiment.canary_coins not in COINS:
        got = (
            "a run without canaries"
            if options.experiment.canaries == 0
            else "a run in which exactly half of them are members"
        )
        raise ConfigurationError(
            f"an audit needs canaries with independent coins, got {got}: train with `fedkge audit --out NEW`, or with "
            "--canaries 1000 --canary-coins independent --record every:5"
        )
    assert run.directory is not None  # noqa: S101 - checked by the caller
    return read_targets(run.directory / CANARIES, run.entities, run.relations)


def _scores(
    run: Run, canaries: Targets, names: Sequence[str], progress: Progress
) -> tuple[dict[str, NDArray[np.float64]], dict[str, str], int]:
    """The scores of every attack by every adversary that it is for, whose views they are, and the last round seen."""
    options = run.configuration
    random = np.random.default_rng(0)
    auxiliary = auxiliary_triples(
        shard_of(run, options.experiment.victim), [canaries], run.entities, run.relations, random, AUXILIARY
    )
    jobs: list[tuple[Attack, Adversary]] = [
        (attack, kind)
        for attack in (make_attack(name) for name in names if name not in release_names())
        for kind in attack.needs.adversary
    ]
    views = {
        kind: recorded_view(run, kind, options.experiment.victim, options.experiment.adversary, auxiliary)
        for kind in {job[1] for job in jobs}
    }
    scores: dict[str, NDArray[np.float64]] = {}
    adversaries: dict[str, str] = {}
    for done, (attack, kind) in enumerate(jobs):
        progress(attack.name, done, len(jobs))
        check(attack, views[kind])
        label = attack.name if len(attack.needs.adversary) == 1 else f"{attack.name} ({kind})"
        scores[label] = _score(run, attack, views[kind], canaries.triples)
        adversaries[label] = kind
    for name in names:
        if name in release_names():
            scores[name], adversaries[name] = white_box_scores(run, canaries), AUDITOR
    progress("done", len(jobs), len(jobs))
    return scores, adversaries, max((view.rounds[-1] for view in views.values()), default=1)


def _asked(run: Run, canaries: Targets) -> int | None:
    if not has_audited_release(run):
        return None
    asked = audited_release(run).asked(in_victims_numbers(run, canaries))
    return None if asked is None else int(np.count_nonzero(asked))


def _score(run: Run, attack: Attack, view: View, triples: Triples) -> NDArray[np.float64]:
    """One score per canary, NaN where the adversary knows too little to have an opinion."""
    scores = np.full(len(triples), np.nan)
    able = _known(run, view, triples)
    if able.any():
        scores[able] = attack.score(view, np.ascontiguousarray(triples[able]))
    return scores


def _known(run: Run, view: View, triples: Triples) -> NDArray[np.bool_]:
    """Which canaries the adversary can judge: it sees both ends move, and knows something about the relation."""
    client = run.configuration.experiment.adversary
    if view.adversary == "server":
        given = view.auxiliary if view.auxiliary is not None else triples[:0]
        return np.isin(triples[:, RELATION], given[:, RELATION])
    able = np.isin(triples[:, RELATION], run.tensors[f"relation_ids/{client}"])
    if view.adversary == "client":
        able &= np.isin(triples[:, [HEAD, TAIL]], run.tensors[f"own/{client}"]).all(axis=1)
        able &= np.logical_or.reduce([ends_known(others, triples) for _, others in overlaps(view, "audit")])
    return np.asarray(able, dtype=np.bool_)


def _plans(directory: Path) -> list[dict[str, Any]]:
    content = read_audit_file(directory / RESULTS)
    return list(content["plans"]) if content else []
