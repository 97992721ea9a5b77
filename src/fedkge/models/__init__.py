"""Models: scorers, their loss, negatives, optimisers, and the compiled kernels that train them."""

from __future__ import annotations

from fedkge.base.registry import look_up
from fedkge.models.complex import ComplEx
from fedkge.models.distmult import DistMult
from fedkge.models.embedding import Embedding, initial_tables
from fedkge.models.rotate import RotatE
from fedkge.models.scorer import Known, ModelShape, Scorer
from fedkge.models.tables import Gradients, RowGradient, Tables
from fedkge.models.transe import TransE

MODELS: dict[str, type[Scorer]] = {
    "transe": TransE,
    "rotate": RotatE,
    "distmult": DistMult,
    "complex": ComplEx,
}
"""Every model by the name of its option value; a new model is one file and one line here."""


def make_scorer(name: str, shape: ModelShape) -> Scorer:
    """The model called `name`, or an error that lists the near names.

    >>> make_scorer("rotate", ModelShape(dimension=16)).entity_width(16)
    32
    """
    return look_up(MODELS, name, "model").of_shape(shape)


__all__ = [
    "MODELS",
    "Embedding",
    "Gradients",
    "Known",
    "ModelShape",
    "RowGradient",
    "Scorer",
    "Tables",
    "initial_tables",
    "make_scorer",
]
