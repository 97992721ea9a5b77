"""A round of training without noise: epochs, or a number of steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedkge.configuration import Configuration
from fedkge.graph import Triples
from fedkge.models.training import Trainer, batches


def train_plainly(
    trainer: Trainer,
    triples: Triples,
    options: Configuration,
    generator: np.random.Generator,
    advance: Callable[[int], None] = lambda _: None,
) -> float:
    """Train a round on these triples; the mean loss of its last epoch, or of its steps."""
    if not len(triples):
        return 0.0
    if not options.training.local_steps:
        return [trainer.epoch(triples, generator, advance) for _ in range(options.training.local_epochs)][-1]
    losses: list[float] = []
    while len(losses) < options.training.local_steps:
        for batch in batches(triples, options.training.batch_size, generator):
            losses.append(trainer.step(batch, generator))
            advance(len(batch))
            if len(losses) == options.training.local_steps:
                break
    return float(np.mean(losses))
