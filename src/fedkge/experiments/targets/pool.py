"""The pool that targets are drawn from: what victim and adversary share, and what no client may hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.base.short_repr import short_repr
from fedkge.experiments.targets.designs import Bits, Targets
from fedkge.graph import HEAD, RELATION, TAIL, Graph, Triples, Vocabulary, distinct_triples, no_triples

Keys: TypeAlias = NDArray[np.int64]
"""Triples as single numbers: (head * relations + relation) * entities + tail."""
AUXILIARY = 20


@short_repr("victim", "adversary")
@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """What targets are drawn from, in the run's ids; make one with `pool_of`.

    real      the victim's training triples inside the overlap that no other client holds
    held_out  its valid and test triples inside the overlap that are in nobody's training triples
    fitting   all its training triples with a shared relation: which entities occur with it on which side
    known     sorted keys of all triples of all clients, and of the excluded ones
    """

    victim: str
    adversary: str
    sizes: tuple[int, int]
    entities: NDArray[np.int64]
    relations: NDArray[np.int64]
    real: Triples
    held_out: Triples
    fitting: Triples
    known: Keys

    @property
    def overlap(self) -> str:
        """The overlap in words, for messages."""
        counts = f"the {len(self.entities):,} entities and {len(self.relations):,} relations"
        return f"{counts} that {self.victim} shares with {self.adversary}" if self.adversary else f"{counts} of its own"


def pool_of(
    victim: Graph,
    adversary: Graph | None,
    shards: Iterable[Graph],
    entities: Vocabulary,
    relations: Vocabulary,
    excluded: Triples | None = None,
) -> Pool:
    """Look at the clients once, for all designs.

    `adversary` None stands for one that sees all of the victim's rows (the server, a collusion). `shards` must hold
    `victim` itself. Triples in `excluded` (the run's ids; canaries that were inserted, auxiliary triples) become
    neither member nor non-member.

    >>> one = Graph.from_names("client-0", [("a", "likes", "b"), ("b", "likes", "c"), ("c", "likes", "d")])
    >>> two = Graph.from_names("client-1", [("b", "likes", "a"), ("c", "likes", "a")])
    >>> pool_of(one, two, [one, two], one.entities, one.relations).real.tolist()
    [[0, 0, 1], [1, 0, 2]]
    """
    sizes, clients = (len(entities), len(relations)), list(shards)
    place = next((number for number, shard in enumerate(clients) if shard is victim), None)
    if place is None:
        raise DataError(f"expected the victim {victim.name} among the {len(clients)} shards, got others only")
    tables = [run_ids(shard.all_triples, shard, entities, relations) for shard in clients]
    taken = triple_keys(no_triples() if excluded is None else excluded, sizes)
    keys = [triple_keys(table, sizes) for table in tables]
    training = [key[: len(shard.train)] for key, shard in zip(keys, clients, strict=True)]
    real, held_out = tables[place][: len(victim.train)], distinct_triples(tables[place][len(victim.train) :])
    real = real[~among(training[place], np.unique(taken))]
    other = adversary or victim
    shared_entities = _shared(victim.entities, other.entities, entities)
    shared_relations = _shared(victim.relations, other.relations, relations)

    def inside(triples: Triples, forbidden: Sequence[Keys]) -> Triples:
        keep = np.isin(triples[:, RELATION], shared_relations)
        keep &= np.isin(triples[:, [HEAD, TAIL]], shared_entities).all(axis=1)
        return triples[keep & ~among(triple_keys(triples, sizes), np.unique(np.concatenate([*forbidden, taken])))]

    return Pool(
        victim=victim.name,
        adversary="" if adversary is None else adversary.name,
        sizes=sizes,
        entities=shared_entities,
        relations=shared_relations,
        real=inside(real, keys[:place] + keys[place + 1 :]),
        held_out=inside(held_out, training),
        fitting=real[np.isin(real[:, RELATION], shared_relations)],
        known=np.unique(np.concatenate([*keys, taken])),
    )


def auxiliary_triples(
    victim: Graph,
    targets: Iterable[Targets],
    entities: Vocabulary,
    relations: Vocabulary,
    random: np.random.Generator,
    per_relation: int = AUXILIARY,
) -> Triples:
    """Up to so many real training triples of each of the victim's relations, none of them a target of any kind.

    They are what an experiment grants the server beforehand. A relation whose triples are all targets gets none.

    >>> one = Graph.from_names("client-0", [("a", "likes", "b"), ("b", "likes", "c"), ("a", "hates", "c")])
    >>> auxiliary_triples(one, [], one.entities, one.relations, np.random.default_rng(1), per_relation=1)[:, 1].tolist()
    [0, 1]
    """
    sizes = (len(entities), len(relations))
    taken = np.unique(np.concatenate([np.empty(0, np.int64), *(triple_keys(one.everything, sizes) for one in targets)]))
    triples = random.permutation(run_ids(victim.train, victim, entities, relations))
    triples = triples[~among(triple_keys(triples, sizes), taken)]
    triples = triples[np.argsort(triples[:, RELATION], kind="stable")]
    _, first, counts = np.unique(triples[:, RELATION], return_index=True, return_counts=True)
    place = np.arange(len(triples)) - np.repeat(first, counts)  # 0, 1, 2 ... within a relation
    return np.ascontiguousarray(triples[place < per_relation])


def run_ids(triples: Triples, shard: Graph, entities: Vocabulary, relations: Vocabulary) -> Triples:
    """A shard's triples with the run's ids in place of its own.

    >>> shard = Graph.from_names("client-0", [("b", "likes", "a")])
    >>> run_ids(shard.train, shard, Vocabulary(("a", "b")), Vocabulary(("hates", "likes"))).tolist()
    [[1, 1, 0]]
    """
    entity = np.array([entities.id_of(name, "entity") for name in shard.entities], dtype=np.int32)
    relation = np.array([relations.id_of(name, "relation") for name in shard.relations], dtype=np.int32)
    return np.stack([entity[triples[:, HEAD]], relation[triples[:, RELATION]], entity[triples[:, TAIL]]], axis=1)


def triple_keys(triples: Triples, sizes: tuple[int, int]) -> Keys:
    """Triples as single numbers, for `sizes` entities and relations.

    >>> triple_keys(np.array([[1, 2, 3]]), (10, 5)).tolist()
    [73]
    """
    head, relation, tail = triples.astype(np.int64).T
    keys: Keys = (head * sizes[1] + relation) * sizes[0] + tail
    return keys


def among(keys: Keys, known: Keys) -> Bits:
    """Which keys occur in the sorted `known`; unlike np.isin it never sorts the larger of the two again."""
    if len(known) == 0:
        return np.zeros(len(keys), dtype=np.bool_)
    found: Bits = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return found


def _shared(victim: Vocabulary, adversary: Vocabulary, run: Vocabulary) -> NDArray[np.int64]:
    return np.array(sorted(run.index[name] for name in victim if name in adversary), dtype=np.int64)
