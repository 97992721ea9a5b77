"""How long a federation will take, roughly: what the estimate of the time left rests on until some are done."""

from __future__ import annotations

from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from paper.plan import Work

WIDTH = {"transe": 1.0, "rotate": 2.6, "distmult": 0.8, "complex": 1.8}
"""How much longer a step of a model takes than one of TransE."""

TRIPLE, CORRUPTION, NUMBER = 1.2e-5, 1e-6, 9e-9
"""Seconds on one core of a server of 2024: per triple with shared negatives, per corruption inside a clipped gradient,
per number that gets noise (dimension 128)."""

TRIPLES, ENTITIES = 60_000, 7_000
"""Of one client of FB15k-237 by entity."""
CALIBRATION, ATTACK = 8.0, 5.0
"""Seconds to calibrate the noise of three clients, and to attack one recorded round."""


def estimated_seconds(work: Work) -> float:
    """Of training and attacking, on one core.

    >>> from paper.plan import AttackOptions
    >>> short, long = (Work({}, Configuration.of(rounds=rounds), (), (), AttackOptions()) for rounds in (1, 20))
    >>> estimated_seconds(short) < estimated_seconds(long)
    True
    """
    options = work.configuration
    size = min(1.0, work.entities / ENTITIES) if work.entities else 1.0
    one_round = _round(options, size)
    training = options.training.rounds * one_round + (CALIBRATION if options.privacy.epsilon else 0.0)
    looks = (
        max(1, len(work.budgets))
        if chosen_defence(options).keeps_ledger
        else options.training.rounds / work.attacks.every
    )
    plays = looks * work.attacks.every / work.attacks.cia_every if work.attacks.active else 0
    forks = max(1, options.experiment.canaries / work.attacks.group_size) * work.attacks.waiting_rounds
    return training + (looks * ATTACK * size if work.attacks.passive else 0) + plays * forks * one_round


def _round(options: Configuration, size: float) -> float:
    """Seconds of one round of all clients."""
    triples = TRIPLES * size
    steps = options.data.clients * options.training.steps_per_round(int(triples))
    width = WIDTH.get(options.model.name, 1.0) * options.model.dimension / 128
    gradients = chosen_defence(options).gradients(options)
    inside = gradients.clip is not None and gradients.corruptions_inside  # a copy is trained on as without a defence
    per_triple = (1 + 2 * options.training.negatives) * CORRUPTION if inside else TRIPLE
    noisy = ENTITIES * size * 128 * NUMBER if inside else 0.0
    return steps * width * (min(options.training.batch_size, triples) * per_triple + noisy)
