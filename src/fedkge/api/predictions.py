"""Answers of a trained model: the best tails of (head, relation, ?), or the best heads of (?, relation, tail)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkge.api.opening import RunLike, opened
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.base.registry import near
from fedkge.base.short_repr import short_repr
from fedkge.base.tabular import Row, Tabular
from fedkge.graph import HEAD, RELATION, TAIL, Graph, Side, Vocabulary
from fedkge.graph.datasets import DATASETS, labels
from fedkge.graph.graph import SPLITS
from fedkge.runs.run import Run

NEW = "new"
NEAR_AMONG = 200_000
"""With more names than this only those that begin or end alike are compared: the comparison is slow."""


@short_repr("known")
@dataclass(frozen=True, slots=True)
class Prediction:
    """One triple that the model scores. `known` is train, valid, test or new, as the client's own graph has it."""

    rank: int
    head: str
    relation: str
    tail: str
    score: float
    known: str


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Tabular):
    """What one client's model answers: predictions, best first, and labels of the names in them as far as known.

    `repr` shows ranks and scores alone; `to_frame()` has the names too.
    """

    client: str
    side: Side
    predictions: tuple[Prediction, ...]
    labels: Mapping[str, str]

    shown: ClassVar[Mapping[str, str]] = {"rank": "rank", "score": "score", "known": "known"}

    def title(self) -> str:
        """Who answers; the names are in `to_frame()`."""
        return f"{len(self.predictions)} answers of {self.client} for a missing {self.side}; names: to_frame()"

    def rows(self) -> list[Row]:
        """One row per prediction, with names and labels."""
        return [
            {
                "rank": one.rank,
                "head": one.head,
                "relation": one.relation,
                "tail": one.tail,
                "score": one.score,
                "known": one.known,
                "label": self.labels.get(one.tail if self.side == "tail" else one.head),
            }
            for one in self.predictions
        ]


def predict(
    run: RunLike,
    relation: str,
    *,
    head: str | None = None,
    tail: str | None = None,
    top: int = 10,
    client: str | None = None,
    unseen_only: bool = False,
) -> Answer:
    """The `top` best triples with a missing head or tail; with both given, that one triple and its rank.

    The rank counts all of the client's entities, known answers included. Without `client` the first client that
    knows all of the names answers. `unseen_only` leaves out the triples that it was trained on. Names may be labels
    where these are unambiguous.

    >>> import fedkge as fk
    >>> run = fk.train(fk.synthetic_graph(60, 4, 400, seed=1), rounds=1, dimension=8, negatives=8)
    >>> answer = predict(run, run.relations[0], head=run.entities[0], top=3)
    >>> [one.rank for one in answer.predictions]
    [1, 2, 3]
    """
    run = opened(run)
    if head is None and tail is None:
        raise ConfigurationError("predict needs a relation and a head or a tail (or both)")
    if top < 1:
        raise ConfigurationError(f"top: expected at least 1, got {top}")
    words = labels(run.configuration.data.source) if run.configuration.data.source in DATASETS else {}
    chosen, shard = _client_that_knows(run, client, relation, [name for name in (head, tail) if name], words)
    relation_id = find(shard.relations, relation, "relation", {})
    side: Side = "head" if head is None else "tail"
    anchor = find(shard.entities, (tail if head is None else head) or "", "entity", words)
    scores = _scores(run, chosen, anchor, relation_id, side)
    known = _known(shard, anchor, relation_id, side)
    order = np.argsort(-scores, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(1, len(order) + 1)
    if head is not None and tail is not None:
        picked = [find(shard.entities, tail, "entity", words)]
    else:
        picked = [entity for entity in order.tolist() if not (unseen_only and known.get(entity) == "train")][:top]
    names = shard.entities
    ends = [(anchor, entity) if side == "tail" else (entity, anchor) for entity in picked]
    predictions = tuple(
        Prediction(
            int(places[entity]),
            names[first],
            shard.relations[relation_id],
            names[second],
            float(scores[entity]),
            known.get(entity, NEW),
        )
        for entity, (first, second) in zip(picked, ends, strict=True)
    )
    shown = {name for item in predictions for name in (item.head, item.tail)}
    return Answer(chosen, side, predictions, {name: words[name] for name in sorted(shown) if name in words})


def _scores(run: Run, client: str, anchor: int, relation: int, side: Side) -> NDArray[np.float32]:
    embedding = run.embedding(client)
    triple = [anchor, relation, 0] if side == "tail" else [0, relation, anchor]
    out: NDArray[np.float32] = np.empty((1, embedding.candidates), dtype=np.float32)
    embedding.score(np.array([triple], dtype=np.int32), side, out)
    return out.ravel()


def _known(shard: Graph, anchor: int, relation: int, side: Side) -> dict[int, str]:
    """The split of every answer that the client's graph holds."""
    given, asked = (HEAD, TAIL) if side == "tail" else (TAIL, HEAD)
    known: dict[int, str] = {}
    for split in reversed(SPLITS):
        triples = shard.split(split)
        rows = triples[(triples[:, given] == anchor) & (triples[:, RELATION] == relation)]
        known.update(dict.fromkeys(rows[:, asked].tolist(), split))
    return known


def _client_that_knows(
    run: Run, client: str | None, relation: str, entities: Iterable[str], words: Mapping[str, str]
) -> tuple[str, Graph]:
    shards = dict(zip(run.clients, run.shards, strict=True))
    if client is not None:
        if client not in shards:
            raise ConfigurationError(f"no client {client!r} in this run: expected one of {', '.join(shards)}")
        return client, shards[client]
    for name, shard in shards.items():
        try:
            find(shard.relations, relation, "relation", {})
            for entity in entities:
                find(shard.entities, entity, "entity", words)
        except DataError:
            continue
        return name, shard
    find(run.relations, relation, "relation", {})
    for entity in entities:
        find(run.entities, entity, "entity", words)
    raise DataError("no single client knows all of these names: choose others, or one of them with --client")


def find(names: Vocabulary, name: str, kind: str, words: Mapping[str, str]) -> int:
    """The id of a name or of an unambiguous label, upper and lower case alike; or an error that lists near ones.

    >>> find(Vocabulary(("HP:1", "HP:2")), "seizure", "entity", {"HP:2": "Seizure"})
    1
    """
    place = names.index.get(name)
    if place is not None:
        return place
    by_label: dict[str, list[str]] = defaultdict(list)
    for candidate in names if words else ():
        if candidate in words:
            by_label[words[candidate].casefold()].append(candidate)
    found = by_label.get(name.casefold(), [])
    if len(found) == 1:
        return names.index[found[0]]
    if found:
        raise DataError(f"{kind} {name!r} is ambiguous: write one of {', '.join(found[:10])}")
    raise DataError(f"unknown {kind} {name!r}; {_hint(names, name, by_label, words)}")


def _hint(names: Vocabulary, name: str, by_label: Mapping[str, list[str]], words: Mapping[str, str]) -> str:
    close = near(name, _plausible(names, name))
    for label in near(name, _plausible(by_label, name)):
        close += [f"{found} ({words[found]})" for found in by_label[label] if found not in close]
    if close:
        return f"near: {', '.join(close[:8])}"
    return f"the names look like: {', '.join(list(names)[:3])}"


def _plausible(names: Iterable[str], name: str) -> list[str]:
    everything = list(names)
    if len(everything) <= NEAR_AMONG:
        return everything
    start, end = name[:3].casefold(), name[-3:].casefold()
    return [other for other in everything if other[:3].casefold() == start or other[-3:].casefold() == end]
