"""Promises in plain English: the one module that turns the codes of a ledger into sentences."""

from __future__ import annotations

from collections.abc import Iterator

from fedkge.accounting.facts import (
    Advance,
    Described,
    Facts,
    Mechanism,
    Neighbours,
    NoisyCopy,
    NoisySteps,
    Payment,
    PublicStart,
    SecretNoise,
)
from fedkge.accounting.promises import Promise
from fedkge.accounting.validity import Fault, FaultKind, faults

GUARANTEE = (
    "Each client gets an (epsilon, delta) guarantee over all rounds. It holds against an adversary who sees every "
    "message, knows all other triples and controls the server."
)

NEIGHBOURS = {
    Neighbours.ADD_OR_REMOVE_TRIPLE: "add or remove one triple",
    Neighbours.REPLACE_TRIPLE: "replace one triple",
}

FAULTS = {
    FaultKind.MISSING_FACT: "the promise does not say: {}",
    FaultKind.RESEARCH_SEED: "the noise comes from a research seed, and anyone who knows the seed can remove the noise",
    FaultKind.UNKNOWN_SELECTION: "selection {} is not known here, so nothing is known about its privacy",
    FaultKind.PUBLISHED_SELECTION: (
        "selection {} is the paper's as printed: relations take raw gradients, its epsilon is not sound"
    ),
    FaultKind.UNKNOWN_SCHEDULE: "noise schedule {} is not known here, so nothing is known about its privacy",
    FaultKind.WRONG_PAYMENT: "the mechanism cannot be paid by the rule {}",
    FaultKind.NO_BUDGET: "noise follows earlier releases, and without a budget nothing bounds what that costs",
    FaultKind.UNSOUND_ACCOUNTANT: "the accountant {} is not sound",
    FaultKind.OTHER_NEIGHBOURS: "accountants count for neighbours that add or remove one triple, the promise says {}",
    FaultKind.NO_PROOF: "the mechanism {} names no proof",
}

SELECTED_ROWS = {"dense": "all rows", "dense-published": "all entity rows, NONE on relations"}

PAYMENTS = {
    Payment.EACH_ROUND: "each round pays for itself",
    Payment.FIRST_ROUND: "the first round pays for all",
    Payment.WHOLE_BUDGET: "the first round takes the whole budget, because noise follows earlier releases",
}


def fault_words(fault: Fault) -> str:
    """Why a promise is no guarantee.

    >>> fault_words(Fault(FaultKind.MISSING_FACT, "names, start"))
    'the promise does not say: names, start'
    """
    return FAULTS[fault.kind].format(fault.about)


def why_not_private(promise: Promise) -> str:
    """All reasons why a promise is no guarantee; blank where it is one.

    >>> why_not_private(Promise("client-0", delta=1e-5))
    'the promise does not say: defence, mechanism, plan, noise_source, names, start'
    """
    return "; ".join(map(fault_words, faults(promise)))


def promise_line(promise: Promise) -> str:
    """The promise in one line.

    >>> facts = Facts(mechanism=NoisyCopy(count_scale=0.5, response_epsilon=0.2))
    >>> promise_line(Promise("client-0", delta=1e-5, epsilon=4, facts=facts)).partition("(")[2]
    'noisy counts of scale 0.5, randomised responses of epsilon 0.2, pld); neighbours: add or remove one triple'
    """
    facts = promise.facts
    budget = f"epsilon {promise.epsilon:g}" if promise.epsilon else "no limit, only a count,"
    rounds = [f"{facts.plan.rounds} rounds"] if facts.plan else []
    how = ", ".join((mechanism_words(facts), *rounds, promise.accountant))
    line = f"{budget} at delta {promise.delta:g} ({how}); neighbours: {NEIGHBOURS[promise.neighbours]}"
    reason = why_not_private(promise)
    return f"NOT PRIVATE: {reason}; it would count {line}" if reason else line


def mechanism_words(facts: Facts) -> str:
    """The mechanism and its noise in a few words."""
    match facts.mechanism:
        case NoisyCopy(count_scale=scale, response_epsilon=epsilon):
            return f"noisy counts of scale {scale:.4g}, randomised responses of epsilon {epsilon:.4g}"
        case NoisySteps(clip=clip):
            return f"noise {facts.plan.noise if facts.plan else 0:.4g}, clip {clip:g}"
        case Described(name=name):
            return name
        case Advance():
            return "only what is released once before the promise"
        case None:
            return "unknown mechanism"


def mechanism_sentence(facts: Facts) -> str:
    """What is done to a client's triples before anything leaves.

    >>> mechanism_sentence(Facts(defence="recommended", mechanism=NoisyCopy(count_scale=0.5, response_epsilon=0.2)))
    'recommended: noisy counts, then randomised responses about likely triples, once; nothing after that'
    """
    match facts.mechanism:
        case NoisyCopy():
            how = "noisy counts, then randomised responses about likely triples, once; nothing after that"
        case NoisySteps(selection=selection, clip=clip, counts=counts):
            rows = SELECTED_ROWS.get(selection, f"rows chosen by {selection}")
            before = "counts with geometric noise, once; then " if counts else ""
            how = f"{before}Poisson samples, gradients of single triples clipped to {clip:g}, Gaussian noise on {rows}"
        case _:
            how = mechanism_words(facts)
    return f"{facts.defence or 'unknown defence'}: {how}"


def fact_rows(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Each fact with its name, but for the digest of the data.

    >>> fact_rows(Facts(noise_source=SecretNoise(), defence="recommended"))
    (('defence', 'recommended'), ('noise source', 'operating system'))
    """
    return tuple(_rows(facts))


def _rows(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.defence is not None:
        yield "defence", facts.defence
    if facts.plan is not None:
        yield "rounds", f"{facts.plan.rounds} planned; {PAYMENTS[facts.plan.payment]}"
        yield "triples", str(facts.plan.triples)
    if isinstance(facts.mechanism, NoisySteps) and facts.plan is not None:
        yield "noise", f"{facts.plan.noise:.6g}"
    yield from _mechanism_rows(facts.mechanism)
    if facts.names is not None:
        yield "names", facts.names.value
    if facts.noise_source is not None:
        source = facts.noise_source
        yield "noise source", "operating system" if isinstance(source, SecretNoise) else f"research seed {source.seed}"
    if facts.start is not None:
        start = facts.start
        yield "start", f"public vectors of {start.vectors}" if isinstance(start, PublicStart) else "random"


def _mechanism_rows(mechanism: Mechanism | None) -> Iterator[tuple[str, str]]:
    match mechanism:
        case NoisyCopy(count_scale=scale, response_epsilon=epsilon):
            yield "copy", f"noisy counts of scale {scale:.6g}, randomised responses of epsilon {epsilon:.6g}"
        case NoisySteps() as steps:
            yield "steps per round", str(steps.steps_per_round)
            yield "batch", str(steps.batch)
            yield "clip", f"{steps.clip:g}"
            yield "row clip", "none" if steps.row_clip is None else f"{steps.row_clip:g}"
            yield "selection", steps.selection
            yield "negatives", steps.negatives.value
            yield "schedule", steps.schedule
            if steps.validation_every is not None:
                yield "validation", f"every {steps.validation_every} rounds"
            if (counts := steps.counts) is not None:
                scales = f"scale {counts.profile_scale:.6g}, by type scale {counts.typed_scale:.6g}"
                yield "counts", f"{scales}, {counts.types} types"
        case Described(name=name, proof=proof, settings=settings):
            yield "mechanism", f"{name} (proof: {proof})"
            yield from ((key, str(value)) for key, value in settings)
