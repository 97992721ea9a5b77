"""Attack a recorded run: which attacks, on which targets, and what they found as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict, Unpack, overload

from fedkge.api.opening import RunLike, directory_of, opened
from fedkge.attacks import make_attack
from fedkge.attacks.attack import misfit
from fedkge.base.errors import ConfigurationError
from fedkge.base.machine import available_cores
from fedkge.base.tabular import Row, Tabular
from fedkge.configuration import Configuration
from fedkge.experiments.attacking import find_experiment, fitting_attacks
from fedkge.experiments.cia import CIA
from fedkge.experiments.experiment import Progress, run_attacks
from fedkge.experiments.outcomes import Outcome
from fedkge.experiments.plan import AttackPlan
from fedkge.experiments.shadow_attack import SHADOWS
from fedkge.experiments.shadows import ShadowPlan
from fedkge.experiments.targets import COUNT, DESIGNS, Design
from fedkge.runs.run import Run

ALL = "A,B,C,D"
"""The designs without a choice; R stands in for C where the canaries are real triples."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attacks(Tabular, Sequence[Outcome]):
    """What the attacks on a run found: a sequence of outcomes, one per attack, adversary, design and round.

    `notes` say which designs were left out, and why.
    """

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    shown: ClassVar[Mapping[str, str]] = {
        "attack": "attack",
        "adversary": "adversary",
        "design": "design",
        "round": "round",
        "auc": "AUC",
        "auc_low": "AUC from",
        "auc_high": "AUC to",
    }

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Outcome, ...]: ...
    def __getitem__(self, place: int | slice) -> Outcome | tuple[Outcome, ...]:
        return self.outcomes[place]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def title(self) -> str:
        """The strongest attack, and what was left out."""
        best = max(self.outcomes, key=lambda one: float(one.metrics["auc"]["value"]))
        strongest = f"{best.attack} ({best.adversary}, design {best.design}, round {best.round})"
        area = f"{best.metrics['auc']['value']:.3f}"
        return " ".join([f"{len(self):,} outcomes; highest AUC {area}: {strongest}.", *self.notes])

    def rows(self) -> list[Row]:
        """One row per outcome. An AUC of 0.5 is guessing; a rate is None where the targets are too few for it."""
        return [
            {
                "attack": one.attack,
                "adversary": one.adversary,
                "design": one.design,
                "round": one.round,
                "members": one.metrics["members"],
                "non_members": one.metrics["non_members"],
                "auc": one.metrics["auc"]["value"],
                "auc_low": one.metrics["auc"]["low"],
                "auc_high": one.metrics["auc"]["high"],
                **{f"tpr_at_{100 * rate['fpr']:g}%": rate["value"] for rate in one.metrics["tpr"]},
                "best_f1": one.metrics["best_f1"]["value"],
                "calibrated_f1": _value(one.metrics["calibrated_f1"]),
            }
            for one in self.outcomes
        ]


class AttackOptions(TypedDict, total=False):
    """The options of an attack, as `fedkge attack` has them; `attack_plan` has their defaults."""

    targets: str
    every: int
    targets_count: int | None
    auxiliary: int
    group_size: int
    waiting_rounds: int
    shadows: int | None
    lira_base: str
    seed: int
    victim: str | None
    adversary: str | None


def attack(
    run: RunLike, *names: str, progress: Progress = lambda *_: None, **options: Unpack[AttackOptions]
) -> Attacks:
    """Run attacks by name (without names: all that fit the run) and say how well each tells members from others.

    The run needs a directory and a transcript: train with `out=...` and `record="every:5"`; design C and the attack
    `shadow` need canaries as well. The options are those of `fedkge attack`. The results are kept as attacks.json.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> shards = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1), clients=2, seed=7)
    >>> with TemporaryDirectory() as folder:
    ...     run = fk.train(shards, rounds=2, dimension=8, negatives=8, out=f"{folder}/run", record="all", seed=3)
    ...     found = attack(run, "upload-difference", targets="B")
    >>> {(one.attack, one.design, one.round) for one in found}
    {('upload-difference', 'B', 2)}
    """
    whole = opened(run)
    directory_of(whole)
    plan, notes = attack_plan(whole, names, **options)
    return Attacks(tuple(run_attacks(whole, plan, progress)), notes)


def attack_plan(
    run: Run,
    names: Sequence[str],
    *,
    targets: str = ALL,
    every: int = 5,
    targets_count: int | None = None,
    auxiliary: int = 20,
    group_size: int = 600,
    waiting_rounds: int = 5,
    shadows: int | None = None,
    lira_base: str = "upload-difference",
    seed: int = 0,
    victim: str | None = None,
    adversary: str | None = None,
) -> tuple[AttackPlan, tuple[str, ...]]:
    """The plan that these options describe, and notes about what it leaves out.

    targets         designs of targets (A, B, C, D, R), separated by commas
    every           attack every so many rounds, and the last
    targets_count   members, and as many non-members, per design; without it up to 500
    auxiliary       true triples per relation that the server is given
    group_size      CIA: targets attacked at once; 0 means all
    waiting_rounds  CIA: rounds between reversal and look
    shadows         shadow federations to train; without it 2 (shadow) or 16 (LiRA)
    lira_base       LiRA: the attack whose scores it compares
    seed            seed of the targets
    """
    pair = (victim or run.configuration.experiment.victim, adversary or run.configuration.experiment.adversary)
    designs, notes = chosen_designs(targets, run, pair)
    plan = replace(
        default_plan(run, names),
        designs=designs,
        every=every,
        count=targets_count or COUNT,
        fewer=targets_count is None,
        auxiliary=auxiliary,
        victim=pair[0],
        adversary=pair[1],
        seed=seed,
        cia=CIA(group_size, waiting_rounds),
        shadows=ShadowPlan(lira_base, shadows or ShadowPlan().count, _cores(run)),
        real_shadows=replace(SHADOWS, count=shadows or SHADOWS.count, processes=_cores(run)),
    )
    return plan, notes


def default_plan(run: Run, names: Sequence[str] = ()) -> AttackPlan:
    """The plan of `attack` without further options."""
    options = run.configuration
    return AttackPlan(
        attacks=check_names(names) if names else tuple(fitting_attacks(run)),
        designs=("A", "B", _canary_design(run), "D") if options.experiment.canaries else ("A", "B", "D"),
        fewer=True,
        victim=options.experiment.victim,
        adversary=options.experiment.adversary,
        threads=_cores(run),
        shadows=ShadowPlan(processes=_cores(run)),
        real_shadows=replace(SHADOWS, processes=_cores(run)),
    )


def check_names(names: Sequence[str], model: str = "") -> tuple[str, ...]:
    """The attacks that were named, each once; an unknown name is an error that lists near ones.

    With the name of a `model`, an attack that does not work on it is an error too.

    >>> check_names(["cip", "cip"])
    ('cip',)
    """
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        models = find_experiment(name).models
        if model and models and model not in {fitting.lower() for fitting in models}:
            raise ConfigurationError(misfit(make_attack(name), model))
    return chosen


def check_training(names: Sequence[str], configuration: Configuration) -> None:
    """Refuse, before training, attacks that will lack what they need."""
    for name in names:
        find_experiment(name).check_training(configuration)


def chosen_designs(text: str, run: Run, pair: tuple[str, str]) -> tuple[tuple[Design, ...], tuple[str, ...]]:
    """The designs that a text like "A,B,C" names, and which of them the run has no canaries for."""
    own = _canary_design(run)
    asked = text.replace("C", own) if text == ALL else text
    designs: tuple[Any, ...] = tuple(dict.fromkeys(part.strip().upper() for part in asked.split(",")))
    if not set(designs) <= set(DESIGNS):
        raise ConfigurationError(f"--targets: expected some of {','.join(DESIGNS)}, got {text!r}")
    options = run.configuration
    if options.experiment.canaries == 0:
        reasons = dict.fromkeys("CR", "this run has no canaries (train with --canaries 1000)")
    elif pair != (options.experiment.victim, options.experiment.adversary):
        whose = f"the canaries are for victim {options.experiment.victim} and adversary {options.experiment.adversary}"
        reasons = dict.fromkeys("CR", whose)
    else:
        reasons = {"R" if own == "C" else "C": f"this run's canaries are design {own}"}
    notes = []
    for design, reason in reasons.items():
        if design in designs and len(designs) > 1:
            notes.append(f"Design {design} is left out: {reason}.")
            designs = tuple(one for one in designs if one != design)
    return designs, tuple(notes)


def _canary_design(run: Run) -> Design:
    return "R" if run.configuration.experiment.canary_source == "real" else "C"


def _cores(run: Run) -> int:
    return run.configuration.training.threads or available_cores()


def _value(estimate: Any) -> float | None:
    return None if estimate is None else float(estimate["value"])
