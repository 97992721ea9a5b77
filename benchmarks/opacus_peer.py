"""Opacus' side of the comparison: one DP-SGD step on embeddings of the size of FB15k-237.

Opacus holds the gradient of each triple as a whole table. The step is the least that it can do: TransE's score of the
positive triples, per-triple gradients, clipping, noise on both tables, SGD; no negatives.

As a program (`python -m benchmarks.opacus_peer`) it prints what a step adds to the memory of its process.
"""

from __future__ import annotations

import json
import time
import warnings

from benchmarks.report import memory_now, peak_memory, reset_peak

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

ENTITIES, RELATIONS, DIMENSION, BATCH = 14_541, 237, 128, 64
NOISE, CLIP, MARGIN = 1.0, 1.2, 10.0


class Scores(torch.nn.Module):
    """TransE with two embedding tables."""

    def __init__(self, entities: int, relations: int, dimension: int) -> None:
        super().__init__()
        self.entities = torch.nn.Embedding(entities, dimension)
        self.relations = torch.nn.Embedding(relations, dimension)

    def forward(self, ends: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """Margin less distance; `ends` are heads and tails."""
        rows = self.entities(ends)
        return MARGIN - (rows[:, 0] + self.relations(relations) - rows[:, 1]).abs().sum(-1)


class OpacusStep:
    """A model, and steps on random triples."""

    def __init__(self, entities: int = ENTITIES, relations: int = RELATIONS) -> None:
        torch.set_num_threads(1)
        self.sizes = entities, relations
        self.model = GradSampleModule(Scores(entities, relations, DIMENSION))
        plain = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.optimiser = DPOptimizer(plain, noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=BATCH)

    def step(self) -> float:
        """CPU-seconds of one step."""
        ends = torch.randint(self.sizes[0], (BATCH, 2))
        relations = torch.randint(self.sizes[1], (BATCH,))
        began = time.process_time()
        self.optimiser.zero_grad()
        loss = -torch.nn.functional.logsigmoid(self.model(ends, relations)).mean()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss.backward()
        self.optimiser.step()
        return time.process_time() - began


def added_memory() -> dict[str, int]:
    """Bytes that steps need beyond the model, and the peak of the whole process."""
    OpacusStep(entities=100).step()  # everything loaded
    bench = OpacusStep()
    reset_peak()
    before = memory_now()
    for _ in range(3):
        bench.step()
    return {"added_bytes": peak_memory() - before, "peak_bytes": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(added_memory()))
