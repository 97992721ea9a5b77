"""Facts of a promise with nothing missing, to take apart in tests."""

from __future__ import annotations

from msgspec.structs import replace

from fedkge.accounting.facts import Facts, NameRule, NegativeRule, NoisySteps, Payment, Plan, RandomStart, SecretNoise

STEPS = NoisySteps(
    steps_per_round=10,
    batch=64,
    clip=1.0,
    row_clip=None,
    selection="dense",
    negatives=NegativeRule.INSIDE,
    schedule="constant",
)
PLAN = Plan(payment=Payment.EACH_ROUND, rounds=1, triples=1000, noise=1.0)
FACTS = Facts(
    defence="noisy-steps",
    mechanism=STEPS,
    plan=PLAN,
    noise_source=SecretNoise(),
    names=NameRule.LISTED,
    start=RandomStart(),
)
FILTERED = replace(
    FACTS, mechanism=replace(STEPS, schedule="validation"), plan=replace(PLAN, payment=Payment.WHOLE_BUDGET)
)
"""Of a run whose noise followed validation."""
