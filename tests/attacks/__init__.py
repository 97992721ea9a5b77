"""Hand-made views, a tiny simulated federation, and plain twins of scores: what the tests of attacks share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from fedkge.graph import Triples
from fedkge.models import Embedding, ModelShape, Scorer, Tables, initial_tables, make_scorer
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions
from fedkge.runs.round import Round
from fedkge.runs.view import Adversary, Numbering, Piece, View
from tests.models.formulas import MODEL_CASES, score_twin

ENTITIES, RELATIONS, DIMENSION, MARGIN = 120, 6, 16, 6.0
MODELS = [name for name, _ in dict(MODEL_CASES).items()]

VICTIM, CLIENT = "client-0", "client-1"
VISIBLE: dict[Adversary, tuple[Piece, ...]] = {
    "server": ("sent", "upload", "result"),
    "client": ("sent", "result", "own_upload", "relations"),
    "collusion": ("sent", "upload", "result", "own_upload", "relations"),
}
"""The pieces of a round that each adversary holds."""


def area_under_curve(scores: np.ndarray, members: np.ndarray) -> float:
    """The chance that a member scores above a non-member, by comparing all pairs."""
    inside, outside = scores[members][:, None], scores[~members][None, :]
    return float(((inside > outside) + 0.5 * (inside == outside)).mean())


@dataclass(frozen=True)
class Pieces:
    """The tables of one round, all of them, in the run's numbering."""

    round: int
    sent: np.ndarray | None = None
    upload: np.ndarray | None = None
    result: np.ndarray | None = None
    own_upload: np.ndarray | None = None
    relations: np.ndarray | None = None


def round_of(pieces: Pieces, adversary: Adversary) -> Round:
    """The messages that `adversary` holds, where all clients own all rows."""
    watched = CLIENT if adversary == "client" else VICTIM

    def rows(*found: tuple[str, str], kind: str = "entities") -> dict:
        seen = ((client, getattr(pieces, piece)) for client, piece in found if piece in VISIBLE[adversary])
        return {client: {kind: table} for client, table in seen if table is not None}

    return Round(
        pieces.round,
        broadcasts=rows((watched, "sent")),
        uploads=rows((VICTIM, "upload"), (CLIENT, "own_upload")),
        results=rows((watched, "result")),
        private=rows((CLIENT, "relations"), kind="relations"),
    )


def view_of(adversary: Adversary, scorer: Scorer, rounds: list[Pieces], **fields) -> View:
    """A view with only what `adversary` may hold of the complete `rounds`, and fields of the view."""
    by_round = {pieces.round: round_of(pieces, adversary) for pieces in rounds}
    tables = [table for one in rounds for table in (one.sent, one.upload, one.result, one.own_upload)]
    entities = next((len(table) for table in tables if table is not None), 0)
    relations = next((len(one.relations) for one in rounds if one.relations is not None), 0)
    numbering = Numbering(
        entities,
        relations,
        dict.fromkeys((VICTIM, CLIENT), np.arange(entities)),
        {CLIENT: np.arange(relations)},
    )
    settings = {
        "adversary": adversary,
        "victim": VICTIM,
        "client": None if adversary == "server" else CLIENT,
        "scorer": scorer,
        "margin": MARGIN,
        "clients": 2,
        "rounds": tuple(by_round),
        "look": by_round.__getitem__,
        "numbering": numbering,
    }
    return View(**settings | fields)


def shape_of(name: str, norm: int = 1, dimension: int = DIMENSION) -> ModelShape:
    return ModelShape(dimension, margin=MARGIN, norm=norm)


def twin(name: str, shape: ModelShape, entities: np.ndarray, relations: np.ndarray, triple) -> float:
    """The score of one triple with margin, by the formula of its model."""
    head, relation, tail = (int(number) for number in triple)
    rows = (table.astype(np.float64) for table in (entities[head], relations[relation], entities[tail]))
    offset = shape.margin if name in ("transe", "rotate") else 0.0
    return offset + score_twin(name, shape.norm, (shape.margin + 2) / shape.dimension, *rows)


def random_rounds(name: str, norm: int = 1, rounds: int = 2, entities: int = 9, relations: int = 3) -> list[Pieces]:
    """Rounds of random rows with every piece filled: not a federation, but every formula can be checked on it."""
    shape = shape_of(name, norm, dimension=4)
    scorer = make_scorer(name, shape)
    generator = np.random.default_rng(11)

    def rows(count: int, width: int) -> np.ndarray:
        return generator.normal(size=(count, width)).astype(np.float32)

    entity_width, relation_width = scorer.entity_width(4), scorer.relation_width(4)
    made = []
    for number in range(1, rounds + 1):
        sent, upload, result, own = (rows(entities, entity_width) for _ in range(4))
        made.append(Pieces(number, sent, upload, result, own, rows(relations, relation_width)))
    return made


@dataclass(frozen=True)
class Federation:
    """Two clients over the same entities; half of the canaries were in the victim's training triples."""

    name: str
    scorer: Scorer
    rounds: list[Pieces]
    canaries: Triples
    members: np.ndarray
    auxiliary: Triples

    def view(self, adversary: Adversary, **fields) -> View:
        if adversary == "server":
            fields = {"auxiliary": self.auxiliary} | fields
        return view_of(adversary, self.scorer, self.rounds, **fields)


def structured_triples(generator: np.random.Generator, count: int) -> Triples:
    """Triples with something to learn: relation r leads from entity e to about e + 7 r + 5."""
    heads = generator.integers(0, ENTITIES, count)
    relations = generator.integers(0, RELATIONS, count)
    tails = (heads + 7 * relations + 5 + generator.integers(0, 3, count)) % ENTITIES
    return np.unique(np.stack([heads, relations, tails], axis=1).astype(np.int32), axis=0)


@cache
def federation(name: str, rounds: int = 8, seed: int = 3) -> Federation:
    """Train two clients of model `name`, averaging after each round."""
    generator = np.random.default_rng(seed)
    shape = shape_of(name)
    scorer = make_scorer(name, shape)
    real = [structured_triples(generator, 400) for _ in range(2)]
    canaries = np.stack([generator.integers(0, top, 200) for top in (ENTITIES, RELATIONS, ENTITIES)], axis=1)
    canaries = np.ascontiguousarray(canaries.astype(np.int32))
    members = generator.random(len(canaries)) < 0.5
    training = [np.concatenate([real[0], canaries[members]]), real[1]]
    options = TrainingOptions(batch_size=32, learning_rate=0.02)
    tables = [initial_tables(scorer, shape, ENTITIES, RELATIONS, generator) for _ in range(2)]
    trainers = [
        Trainer(Embedding(scorer, table, MARGIN), Negatives(ENTITIES, count=8, corrupt="both"), options)
        for table in tables
    ]
    shared, seen = tables[0].entities.copy(), []
    for number in range(1, rounds + 1):
        sent, uploads = shared, []
        for trainer, triples in zip(trainers, training, strict=True):
            trainer.embedding.tables.entities[:] = sent
            trainer.reset_optimisers()
            for _ in range(3):
                trainer.epoch(triples, generator)
            uploads.append(trainer.embedding.tables.entities.copy())
        shared = (uploads[0] + uploads[1]) / 2
        seen.append(Pieces(number, sent, uploads[0], shared, uploads[1], tables[1].relations.copy()))
    return Federation(name, scorer, seen, canaries, members, real[0][:: max(1, len(real[0]) // 120)])


def without(view: View, *pieces: str, rounds: tuple[int, ...] | None = None) -> View:
    """The same view with pieces of every round (or of these `rounds`), or fields of the view, taken away."""
    fields = {piece: None for piece in pieces if piece in ("auxiliary", "owners", "own_triples")}
    clients = {"upload": VICTIM, "own_upload": CLIENT}
    kinds = {"sent": "broadcasts", "result": "results", "relations": "private"}

    def look(number: int) -> Round:
        seen = view.look(number)
        if rounds is not None and number not in rounds:
            return seen
        hidden = {clients[piece] for piece in pieces if piece in clients}
        uploads = {name: rows for name, rows in seen.uploads.items() if name not in hidden}
        return replace(seen, uploads=uploads, **{kinds[piece]: {} for piece in pieces if piece in kinds})

    return replace(view, look=look, **fields)


__all__ = [
    "MODELS",
    "MODEL_CASES",
    "Federation",
    "Pieces",
    "Tables",
    "federation",
    "random_rounds",
    "twin",
    "view_of",
    "without",
]
