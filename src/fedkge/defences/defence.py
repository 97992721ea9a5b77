"""One client's defence: from the configuration to steps, noise and prices, all out of one value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.accountants import Accountant, make_accountant, merged
from fedkge.accounting.calibration import calibrate
from fedkge.accounting.deltas import chosen_delta
from fedkge.accounting.facts import (
    CountFacts,
    Facts,
    Mechanism,
    NameRule,
    NegativeRule,
    NoisyCopy,
    NoisySteps,
    Payment,
    Plan,
    PublicStart,
    RandomStart,
)
from fedkge.accounting.filters import RenyiFilter
from fedkge.accounting.ledger import Ledger, Promise
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.base.registry import look_up
from fedkge.configuration import OPTIONS, Configuration, kebab
from fedkge.configuration.presets import COPYING, FEW_TRIPLES, OF_STEPS
from fedkge.defences.advance import accountant_of, digest_of, noise_source_of, public_size
from fedkge.defences.counts.released import CountPlan
from fedkge.defences.noisy_copy import CopyPlan
from fedkge.graph import Graph
from fedkge.mechanisms import PUBLISHED, SELECTIONS
from fedkge.mechanisms.adafest import Adafest
from fedkge.mechanisms.clipping import Clip
from fedkge.mechanisms.dense import Dense
from fedkge.mechanisms.dense_published import DensePublished
from fedkge.mechanisms.events import Charge, Geometric, Responses
from fedkge.mechanisms.fest import Fest
from fedkge.mechanisms.gaps import candidates
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.plan import StepPlan
from fedkge.mechanisms.ptr import Ptr
from fedkge.mechanisms.ptr_published import PtrPublished
from fedkge.mechanisms.schedule import ByValidation, Constant, GeometricDecay, Schedule
from fedkge.mechanisms.selection import Selection

PROFILE_PART = 5 / 6
"""Of what counts cost: types are found in the profile, so its noise hurts twice."""
MOST_EPSILON = 500.0
STEPS = "--defence noisy-steps"


@dataclass(frozen=True)
class Defence:
    """How one client defends itself: `noise` is the multiplier of the first round, which the budget was calibrated to.

    What a step samples, clips, selects and adds comes from `plan`, and what it costs from the same plan.
    """

    options: Configuration
    triples: int
    """The number of triples that others may know: noisy and paid for, or public anyway."""
    entities: int
    noise: float
    data: str = ""
    """A keyed digest of the client's data, by which its holder recognises runs on the same triples; blank for none."""
    advance: tuple[Charge, ...] = ()
    """What was paid before the promise."""

    @property
    def delta(self) -> float:
        """The user's, or what the public size allows."""
        return chosen_delta(self.options.privacy.delta, self.triples, self.options.privacy.allow_large_delta)

    @property
    def steps(self) -> int:
        """Steps per round, by public numbers only."""
        return self.options.training.steps_per_round(self.triples)

    @property
    def schedule(self) -> Schedule:
        """The noise of each round."""
        options = self.options
        if options.privacy.noise_schedule == "validation":
            return ByValidation(self.noise, options.privacy.noise_decay, options.privacy.least_gain)
        if options.privacy.noise_schedule == "decay":
            return GeometricDecay(self.noise, options.privacy.noise_decay)
        return Constant(self.noise)

    def plan(self, noise: float, rows: NDArray[np.int32] | None = None) -> StepPlan:
        """A step with this noise; `rows` are those that `fest` has chosen."""
        options = self.options
        clip = Clip(options.privacy.clip, options.privacy.row_clip, options.privacy.normalise)
        selection, gradient = self._selection(clip, noise, rows)
        return StepPlan(options.training.batch_size, self.triples, clip, gradient, selection)

    def rate(self, rate: float, plan: StepPlan) -> float:
        """The learning rate: the given one, or less where the noise of a step would move numbers by too much."""
        options = self.options
        if not options.privacy.noise_step or options.training.optimiser != "sgd":
            return rate
        return min(rate, options.privacy.noise_step * plan.batch / plan.deviation)

    def _selection(self, clip: Clip, noise: float, rows: NDArray[np.int32] | None) -> tuple[Selection, float]:
        options = self.options
        if options.privacy.selection == "adafest":
            selection, gradient = Adafest.split(noise, options.privacy.selection_share)
            return Adafest(selection, options.privacy.selection_threshold), gradient
        if options.privacy.selection == "fest":
            return Fest(np.empty(0, np.int32) if rows is None else rows, self.histogram_noise), noise
        if options.privacy.selection == "ptr":
            return Ptr(clip, options.training.batch_size, noise, noise, options.privacy.test_failure), noise
        if options.privacy.selection == "ptr-published":
            return PtrPublished(clip, options.training.batch_size, noise, noise, options.privacy.test_failure), noise
        return DensePublished() if options.privacy.selection == "dense-published" else Dense(), noise

    @property
    def histogram_noise(self) -> float:
        """The multiplier of the one histogram of `fest`."""
        return float(self.noise / self.options.privacy.selection_share**0.5)

    @property
    def _shared_out(self) -> float:
        """The epsilon that shares are parts of: what names leave."""
        options = self.options
        return (options.privacy.epsilon or 0.0) * (
            1 - options.privacy.names_share if options.privacy.names == "threshold" else 1
        )

    @property
    def counts(self) -> CountPlan | None:
        """How the client counts once, before its first step; None if it does not.

        A part of the share pays for the profile, the rest for the typed table; a triple changes two cells of each. The
        pooled baseline does not count: a count of all graphs is no part of one client's model.
        """
        options = self.options
        if (
            not options.privacy.count_share
            or options.privacy.epsilon is None
            or options.federation.strategy == "pooled"
            or options.privacy.copy_share
        ):
            return None
        paid = options.privacy.count_share * self._shared_out
        return CountPlan(
            Geometric.scale_for(PROFILE_PART * paid),
            Geometric.scale_for((1 - PROFILE_PART) * paid),
            options.privacy.count_types,
        )

    @property
    def copy(self) -> CopyPlan | None:
        """How the client copies its graph once, before it trains on the copy alone; None if it does not.

        Counts get their share, answers the rest; both are stretched by `noise`, so that the whole keeps the budget. The
        share may be another where triples are few, by public numbers alone.
        """
        options = self.options
        if not options.privacy.copy_share or options.privacy.epsilon is None:
            return None
        shares = options.privacy.count_share, options.privacy.copy_share
        if options.privacy.sparse_share and self.triples < FEW_TRIPLES * self.entities:
            shares = options.privacy.sparse_share, 1 - options.privacy.sparse_share
        counts, answers = (share * self._shared_out / self.noise for share in shares)
        return CopyPlan(Geometric.scale_for(counts), answers)

    def choose_rows(self, triples: NDArray[np.int32], source: NoiseSource) -> NDArray[np.int32]:
        """The rows of `fest`, chosen once; what it costs is part of the first round's charges."""
        keep = max(1, round(self.options.privacy.selection_rows * self.entities))
        return Fest.of_histogram(np.unique(triples, axis=0), self.entities, keep, self.histogram_noise, source).rows

    def charges(self, noise: float, first: bool) -> tuple[Charge, ...]:
        """What a round with this noise costs; the first one that a client trains also pays for what is chosen once."""
        if self.copy:
            return (Charge(Geometric(self.copy.profile_scale)), Charge(Responses(self.copy.epsilon))) if first else ()
        plan = self.plan(noise)
        return (*(self._once(plan.selection) if first else ()), plan.charge(self.steps))

    def _once(self, selection: Selection) -> Iterator[Charge]:
        if isinstance(selection, Fest) and (histogram := selection.histogram_event()):
            yield Charge(histogram)
        if self.counts:
            yield Charge(Geometric(self.counts.profile_scale))
            yield Charge(Geometric(self.counts.typed_scale))

    def planned(self, rounds: int) -> tuple[Charge, ...]:
        """What was paid before and so many rounds cost, if the noise falls as fast as it may."""
        numbers = range(1, rounds + 1)
        return merged(
            (*self.advance, *(each for n in numbers for each in self.charges(self.least_noise(n), first=n == 1)))
        )

    def noise_of(self, round_number: int, history: Sequence[float] = ()) -> float:
        """The noise of a round, after these public validation MRRs; rounds beyond the plan get that of its last."""
        return self.schedule.multiplier(min(round_number, self.options.training.rounds), history)

    def least_noise(self, round_number: int) -> float:
        """The least noise that a round may have: that of the schedule, or one decay per validation so far."""
        if not self.schedule.adaptive:
            return self.noise_of(round_number)
        validations = (round_number - 1) // max(1, self.options.training.evaluate_every)
        return float(self.noise * self.options.privacy.noise_decay ** max(0, validations - 1))

    @property
    def accountant(self) -> Accountant:
        """Who counts: the paper's formulas only for its own test."""
        return make_accountant(accountant_of(self.options))

    def affordable(self, spent: Sequence[Charge], charges: Sequence[Charge]) -> bool:
        """Whether the budget allows these charges after what was spent."""
        epsilon, delta = self.options.privacy.epsilon, self.delta
        if epsilon is None or not charges:
            return True
        if self.schedule.adaptive:
            return self._filter(epsilon).admits(spent, charges)
        return self.accountant.epsilon(merged((*spent, *charges)), delta) <= epsilon

    def _filter(self, epsilon: float) -> RenyiFilter:
        return RenyiFilter(epsilon, self.delta, self.planned(self.options.training.rounds))

    def promise(self, client: str) -> Promise:
        """What the client promises before it spends anything."""
        options = self.options
        last = self.least_noise(options.training.rounds)
        facts = Facts(
            data=self.data,
            defence=options.privacy.defence,
            mechanism=self._mechanism(),
            plan=Plan(payment=self._payment, rounds=options.training.rounds, triples=self.triples, noise=self.noise),
            noise_source=noise_source_of(options),
            names=NameRule(options.privacy.names),
            start=PublicStart(vectors=options.training.init) if options.training.init else RandomStart(),
        )
        return Promise(
            client,
            self.delta,
            options.privacy.epsilon,
            accountant_of(options),
            largest_round=self.charges(last, first=True),
            facts=facts,
        )

    @property
    def _payment(self) -> Payment:
        if self.copy:
            return Payment.FIRST_ROUND
        return Payment.WHOLE_BUDGET if self.schedule.adaptive else Payment.EACH_ROUND

    def _mechanism(self) -> Mechanism:
        options, counts = self.options, self.counts
        if self.copy:
            return NoisyCopy(count_scale=self.copy.profile_scale, response_epsilon=self.copy.epsilon)
        return NoisySteps(
            steps_per_round=self.steps,
            batch=options.training.batch_size,
            clip=options.privacy.clip,
            row_clip=options.privacy.row_clip,
            selection=options.privacy.selection,
            negatives=NegativeRule(options.privacy.private_negatives),
            schedule=options.privacy.noise_schedule,
            validation_every=options.training.evaluate_every if self.schedule.adaptive else None,
            counts=CountFacts(**asdict(counts)) if counts else None,
        )

    def source(self, client: int, round_number: int) -> NoiseSource:
        """Fresh secret noise for a round, or the research seed's."""
        seed = self.options.privacy.noise_seed
        return NoiseSource.secret() if seed is None else NoiseSource.research(seed, client, round_number)


def defence_of(options: Configuration, client: str, shard: Graph, ledger: Ledger, number: int = 0) -> Defence | None:
    """The client's defence: as its promise in the ledger says, or newly calibrated and promised there.

    `number` is the client's in the federation: under a research seed its noise follows from it.
    """
    if options.privacy.defence == "none":
        return None
    defence = planned_defence(options, client, shard, ledger, number)
    if not ledger.is_promised(client):
        ledger.promise(defence.promise(client))
    return defence


def planned_defence(options: Configuration, client: str, shard: Graph, ledger: Ledger, number: int = 0) -> Defence:
    """The same without the promise. The client's size is released and paid for: a refusal may depend on it."""
    entities, advance = len(shard.entities), _advance(ledger, client)
    if ledger.is_promised(client):
        made = ledger.promises[client]
        plan, mechanism = made.plan, made.facts.mechanism
        fixed: dict[str, object] = {"rounds": plan.rounds, "delta": made.delta, "allow_large_delta": True}
        if isinstance(mechanism, NoisySteps) and mechanism.validation_every is not None:
            fixed["evaluate_every"] = mechanism.validation_every
        options = options.updated(**fixed)  # a run may be prolonged; what was calibrated may not follow
        return Defence(options, plan.triples, entities, plan.noise, made.facts.data, advance)
    if options.privacy.selection in {Ptr.name, PtrPublished.name}:
        candidates(options.training.batch_size, entities)  # an error of its own, before anything is paid
    size = public_size(options, client, shard, ledger, number)
    known, advance = ledger.promises.get(client), _advance(ledger, client)
    data = known.facts.data if known else digest_of(client, shard, ledger)
    noise = options.privacy.noise or calibrated(options, size, entities, advance)
    defence = Defence(options, size, entities, noise, data, advance)
    first = defence.charges(defence.least_noise(1), first=True)
    if not defence.affordable(advance, first):
        cost = defence.accountant.epsilon(merged((*advance, *first)), defence.delta)
        raise PrivacyError(
            f"{client}: one round of {defence.steps} steps with noise {defence.noise:g} costs epsilon {cost:.3g}, the "
            f"budget is {options.privacy.epsilon:g}: raise --noise, or leave it out and it is calibrated to the budget"
        )
    return defence


def _advance(ledger: Ledger, client: str) -> tuple[Charge, ...]:
    return merged(charge for once in ledger.once(client).values() for charge in once.charges)


def calibrated(options: Configuration, triples: int, entities: int, advance: tuple[Charge, ...]) -> float:
    """The least noise that keeps the budget, of which some is paid already."""
    if options.privacy.epsilon is None:
        raise _without_budget(options)
    accountant = make_accountant("rdp" if options.privacy.noise_schedule == "validation" else accountant_of(options))
    return calibrate(
        lambda noise: Defence(options, triples, entities, noise, advance=advance).planned(options.training.rounds),
        options.privacy.epsilon,
        chosen_delta(options.privacy.delta, triples, options.privacy.allow_large_delta),
        accountant,
    )


def _without_budget(options: Configuration) -> ConfigurationError:
    if options.privacy.copy_share:
        noise = "" if options.privacy.noise is None else f"; noise is for {STEPS}"
        return ConfigurationError(f"the defence {options.privacy.defence!r} needs a budget: --epsilon 8{noise}")
    return ConfigurationError(
        f"the defence {options.privacy.defence!r} needs a budget or noise: --epsilon 8 or --noise 1"
    )


def _against_copies(options: Configuration) -> Iterator[tuple[object, str]]:
    """What does not go with a noisy copy, and why."""
    if not options.privacy.copy_share:
        yield options.privacy.sparse_share, "sparse-share is a copy's: leave it out, or choose --defence recommended"
        yield options.privacy.defence == COPYING, f"the defence {COPYING} is a copy: set copy-share, or choose {STEPS}"
        return
    instead = f"choose {STEPS}" if options.privacy.defence == COPYING else "leave copy-share out"
    for name in OF_STEPS:
        given = options.option(name) != OPTIONS[name].info.default
        yield given, f"a noisy copy takes no noisy steps: leave {kebab(name)} out, or {instead}"
    yield not options.privacy.count_share, "a copy needs counts to know what to ask: set count-share above 0"
    yield (
        abs(options.privacy.count_share + options.privacy.copy_share - 1) > 1e-9,
        "count-share and copy-share must add up to 1",
    )
    yield (
        options.privacy.epsilon and options.privacy.epsilon > MOST_EPSILON,
        f"an epsilon above {MOST_EPSILON:g} hides nothing",
    )
    yield (
        options.federation.strategy == "pooled",
        f"a pooled graph is nobody's to copy: choose another strategy, or {STEPS}",
    )


def _against_thresholds(options: Configuration) -> Iterator[tuple[object, str]]:
    """What does not go with names that are released by a threshold, and why."""
    if options.privacy.names != "threshold":
        return
    yield options.privacy.epsilon is None, "names by a threshold are paid with a share of the budget: name --epsilon"
    yield (
        options.federation.strategy == "pooled",
        "a pooled graph is nobody's to release names of: choose another strategy",
    )
    yield (
        options.experiment.canaries,
        "canaries take their names from triples: set names to from-triples, or canaries to 0",
    )
    yield options.privacy.selection in PUBLISHED, "the paper's formulas do not know names: set names to from-triples"


def check_defence(options: Configuration) -> None:
    """Refuse options that would make a promise untrue, before anything is read or written."""
    if options.privacy.defence == "none":
        if options.privacy.epsilon is not None or options.privacy.noise is not None:
            raise PrivacyError("defence none keeps no budget: name a defence (--defence recommended), or leave it out")
        if options.privacy.copy_share or options.privacy.count_share or options.privacy.sparse_share:
            raise PrivacyError("shares are parts of a budget, and there is none: name --epsilon")
        if options.privacy.names == "threshold":
            raise PrivacyError("names by a threshold are paid from a budget, and there is none: name --epsilon")
        return
    if options.privacy.epsilon is None and (options.privacy.noise is None or options.privacy.copy_share):
        raise _without_budget(options)
    look_up(SELECTIONS, options.privacy.selection, "selection")
    chosen_delta(options.privacy.delta, options.privacy.public_triples, options.privacy.allow_large_delta)
    for wrong, reason in (
        (options.training.patience, "patience stops by private validation triples: set patience to 0"),
        (
            options.training.filter_negatives,
            "filtered negatives tell which triples are private: set filter-negatives to false",
        ),
        (
            options.training.init and not options.privacy.public_init,
            "start vectors that were trained on private triples would carry them past the noise: leave --init out, or "
            "say --public-init if everybody may know the vectors",
        ),
        (
            options.data.source in (options.privacy.public_graph, options.privacy.public_validation),
            f"{options.data.source} is the private data, so it cannot be the public graph too",
        ),
        (
            options.training.regularisation and not options.privacy.copy_share,
            "regularisation of positive triples is not clipped: set regularisation to 0",
        ),
        *_against_copies(options),
        *_against_thresholds(options),
        (
            options.privacy.private_negatives == "inside" and not SELECTIONS[options.privacy.selection].releases_all,
            f"negatives inside the gradient touch rows that {options.privacy.selection} would not noise: "
            "set private-negatives to public, or selection to dense",
        ),
        (
            options.privacy.noise_schedule == "validation"
            and not (options.privacy.public_validation and options.privacy.epsilon),
            "noise by validation needs --public-validation GRAPH (public triples) and --epsilon",
        ),
        (
            options.privacy.count_share and options.privacy.epsilon is None,
            "counts are paid with a share of the budget: name --epsilon, or set count-share to 0",
        ),
        (
            options.privacy.count_share and options.privacy.selection in PUBLISHED,
            "the paper's formulas do not know counts: set count-share to 0",
        ),
        (
            options.privacy.noise_schedule == "validation" and options.privacy.selection in PUBLISHED,
            f"noise by validation needs a sound selection: {options.privacy.selection} has no Renyi curve",
        ),
    ):
        if wrong:
            raise PrivacyError(f"defence {options.privacy.defence}: {reason}")
