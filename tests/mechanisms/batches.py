"""Batches of per-triple gradients for tests, and their plain NumPy twins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.mechanisms import Clip, PerTriple

Gradient = tuple[dict[int, NDArray[Any]], int, NDArray[Any]]
"""The entity rows of one triple with their gradients, its relation, and the gradient of that."""


def batch_of(gradients: list[Gradient], width: int, dtype: Any = np.float64) -> PerTriple:
    rows = [row for entities, _, _ in gradients for row in entities]
    values = [value for entities, _, _ in gradients for value in entities.values()]
    sizes = [len(entities) for entities, _, _ in gradients]
    batch = PerTriple(
        np.array(values, dtype).reshape(-1, width),
        np.array(rows, np.int32),
        np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64),
        np.array([value for _, _, value in gradients], dtype).reshape(-1, width),
        np.array([relation for _, relation, _ in gradients], np.int32),
    )
    batch.check()
    return batch


def random_gradients(
    generator: np.random.Generator, triples: int, table: int, relations: int, width: int, most_rows: int = 2
) -> list[Gradient]:
    """Gradients of very different sizes; about every fifth triple is a self-loop, with one entity row."""
    gradients: list[Gradient] = []
    for _ in range(triples):
        count = 1 if generator.random() < 0.2 else int(generator.integers(1, most_rows + 1))
        rows = generator.choice(table, min(count, table), replace=False)
        size = 10.0 ** generator.uniform(-2, 2)
        entities = {int(row): size * generator.standard_normal(width) for row in rows}
        gradients.append((entities, int(generator.integers(relations)), size * generator.standard_normal(width)))
    return gradients


def clipped_sums(
    clip: Clip, gradients: list[Gradient], table: int, relations: int, width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    entities, relation_sums = np.zeros((table, width)), np.zeros((relations, width))
    clip.add_to(batch_of(gradients, width), entities, relation_sums)
    return entities, relation_sums


def sums_in_numpy(
    clip: Clip, gradients: list[Gradient], table: int, relations: int, width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What `Clip.add_to` must add, by its definition."""
    entities, relation_sums = np.zeros((table, width)), np.zeros((relations, width))
    for rows, relation, relation_value in gradients:
        whole = np.concatenate([*rows.values(), relation_value])
        norm = np.linalg.norm(whole)
        if not np.isfinite(whole).all() or norm == 0:
            continue
        scale = clip.joint / norm if clip.normalise else min(1.0, clip.joint / norm)
        for row, value in rows.items():
            row_norm = np.linalg.norm(scale * value)
            shorter = 1.0 if clip.row is None or row_norm <= clip.row else clip.row / row_norm
            entities[row] += shorter * scale * value
        relation_sums[relation] += scale * relation_value
    return entities, relation_sums
