"""Scores of one triple straight from the paper's table of score functions, without margin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def transe(head: Any, relation: Any, tail: Any, norm: int = 1) -> float:
    return -float(np.linalg.norm(head + relation - tail, ord=norm))


def rotate(head: Any, relation: Any, tail: Any, phase_range: float) -> float:
    turned = complex_of(head) * np.exp(1j * np.pi * relation / phase_range)
    return -float(np.abs(turned - complex_of(tail)).sum())


def distmult(head: Any, relation: Any, tail: Any) -> float:
    return float(np.sum(head * relation * tail))


def complex_(head: Any, relation: Any, tail: Any) -> float:
    return float(np.real(np.sum(complex_of(head) * complex_of(relation) * np.conj(complex_of(tail)))))


def complex_of(row: Any) -> Any:
    """The first half of a row is the real part, the second half the imaginary part."""
    half = len(row) // 2
    return row[:half] + 1j * row[half:]


MODEL_CASES = [("transe", 1), ("transe", 2), ("rotate", 1), ("distmult", 1), ("complex", 1)]


def score_twin(name: str, norm: int, phase_range: float, head: Any, relation: Any, tail: Any) -> float:
    """The score of the model with this name."""
    scores: Mapping[str, Callable[[], float]] = {
        "transe": lambda: transe(head, relation, tail, norm),
        "rotate": lambda: rotate(head, relation, tail, phase_range),
        "distmult": lambda: distmult(head, relation, tail),
        "complex": lambda: complex_(head, relation, tail),
    }
    return scores[name]()
