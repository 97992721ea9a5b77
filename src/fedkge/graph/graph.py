"""The Graph: names, and integer triples that refer to them. Everything else in fedkge works on the integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.base.registry import near

Triples: TypeAlias = NDArray[np.int32]
"""Array of shape (n, 3): head, relation, tail; C-contiguous."""

Side: TypeAlias = Literal["tail", "head"]
"""Which end of a triple is missing, corrupted or ranked."""

HEAD, RELATION, TAIL = 0, 1, 2
SPLITS = ("train", "valid", "test")


def no_triples() -> Triples:
    """An empty table of triples.

    >>> no_triples().shape
    (0, 3)
    """
    return np.empty((0, 3), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Distinct names in a fixed order; the position of a name is its id.

    >>> names = Vocabulary(("aspirin", "headache"))
    >>> names.id_of("headache"), len(names), names[0]
    (1, 2, 'aspirin')
    """

    names: Sequence[str]

    @classmethod
    def union(cls, vocabularies: Sequence[Vocabulary]) -> Vocabulary:
        """All names: the first vocabulary's in its order, then the new ones of the second, and so on.

        >>> list(Vocabulary.union([Vocabulary(("b", "a")), Vocabulary(("a", "c"))]))
        ['b', 'a', 'c']
        """
        if len(vocabularies) == 1:
            return vocabularies[0]
        return cls(tuple(dict.fromkeys(name for vocabulary in vocabularies for name in vocabulary)))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} names)"

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, identifier: int) -> str:
        return self.names[identifier]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.index

    @cached_property
    def index(self) -> dict[str, int]:
        """Name to id; made at the first look-up."""
        index = {name: identifier for identifier, name in enumerate(self.names)}
        if len(index) != len(self.names):
            raise DataError(f"a vocabulary holds {len(self.names) - len(index)} repeated names: make them distinct")
        return index

    def id_of(self, name: str, kind: str = "name") -> int:
        """The id of `name`, or an error that lists near names."""
        identifier = self.index.get(name)
        if identifier is None:
            close = near(name, self.names)
            hint = f"; near: {', '.join(close)}" if close else ""
            raise DataError(f"unknown {kind} {name!r}{hint}")
        return identifier


@dataclass(frozen=True, eq=False)
class Graph:
    """A knowledge graph: vocabularies and three sets of distinct triples.

    A client's shard is a Graph too: its vocabularies hold only what the client owns.
    `removed_duplicates` counts the repeated triples that were dropped on the way in.

    >>> graph = Graph.from_names("tiny", train=[("a", "likes", "b"), ("b", "likes", "a")])
    >>> graph.train.tolist()
    [[0, 0, 1], [1, 0, 0]]
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: Triples
    valid: Triples = field(default_factory=no_triples)
    test: Triples = field(default_factory=no_triples)
    elsewhere: Triples = field(default_factory=no_triples)
    """True triples among this shard's names that are not in it: never trained on, only used for filtered ranking."""
    removed_duplicates: int = 0
    notice: str = ""
    """An acknowledgement that must be shown wherever the graph is used."""

    def __post_init__(self) -> None:
        for split in (*SPLITS, "elsewhere"):
            triples: Triples = getattr(self, split)
            if triples.dtype != np.int32 or triples.ndim != 2 or triples.shape[1] != 3:
                raise DataError(
                    f"{self.name}/{split}: expected int32 triples of shape (n, 3), got {triples.dtype} {triples.shape}"
                )
            if len(triples):
                low, high = triples.min(axis=0), triples.max(axis=0)
                limits = (len(self.entities), len(self.relations), len(self.entities))
                if low.min() < 0 or any(int(top) >= limit for top, limit in zip(high, limits, strict=True)):
                    raise DataError(f"{self.name}/{split}: an id lies outside the vocabularies {limits}, got {high}")

    def __repr__(self) -> str:
        names = f"{len(self.entities):,} entities, {len(self.relations):,} relations"
        return (
            f"Graph({self.name!r}: {names}; {', '.join(f'{len(self.split(one)):,} {one}' for one in SPLITS)} triples)"
        )

    def split(self, name: str) -> Triples:
        """The triples of "train", "valid" or "test"."""
        if name not in SPLITS:
            raise DataError(f"unknown split {name!r}: expected train, valid or test")
        triples: Triples = getattr(self, name)
        return triples

    def content(self) -> Iterator[bytes | memoryview]:
        """Everything that training or ranking uses, with lengths: different graphs give different bytes.

        >>> graph = Graph.from_names("tiny", train=[("a", "likes", "b")])
        >>> b"".join(graph.content())[:16]
        b'2\\n1 a\\n1 b\\n1\\n5 li'
        """
        for names in (self.entities, self.relations):
            yield f"{len(names)}\n".encode()
            for name in names:
                yield f"{len(name.encode())} {name}\n".encode()
        for triples in (self.train, self.valid, self.test, self.elsewhere):
            yield f"{len(triples)}\n".encode()
            yield np.ascontiguousarray(triples).reshape(-1).view(np.uint8).data

    @property
    def all_triples(self) -> Triples:
        """Train, valid and test in one table."""
        return np.concatenate([self.train, self.valid, self.test])

    @property
    def true_triples(self) -> Triples:
        """All triples that are known to be true, here or elsewhere. Filtered ranking does not punish them."""
        return np.concatenate([self.all_triples, self.elsewhere])

    @classmethod
    def from_names(
        cls,
        name: str,
        train: Iterable[tuple[str, str, str]],
        valid: Iterable[tuple[str, str, str]] = (),
        test: Iterable[tuple[str, str, str]] = (),
        notice: str = "",
    ) -> Graph:
        """Number the names in order of appearance, drop repeated triples and count them."""
        entities: dict[str, int] = {}
        relations: dict[str, int] = {}
        tables, removed = [], 0
        for split in (train, valid, test):
            rows = [
                (
                    entities.setdefault(head, len(entities)),
                    relations.setdefault(relation, len(relations)),
                    entities.setdefault(tail, len(entities)),
                )
                for head, relation, tail in split
            ]
            distinct = distinct_triples(np.array(rows, dtype=np.int32).reshape(-1, 3))
            removed += len(rows) - len(distinct)
            tables.append(distinct)
        return cls(
            name,
            Vocabulary(tuple(entities)),
            Vocabulary(tuple(relations)),
            train=tables[0],
            valid=tables[1],
            test=tables[2],
            removed_duplicates=removed,
            notice=notice,
        )


def distinct_triples(triples: Triples) -> Triples:
    """The first occurrence of every triple, in the order they came.

    >>> distinct_triples(np.array([[0, 0, 1], [0, 0, 1], [1, 0, 0]], dtype=np.int32)).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    if len(triples) == 0:
        return no_triples()
    keys = np.ascontiguousarray(triples).view([("", np.int32)] * 3).ravel()
    _, first = np.unique(keys, return_index=True)
    return np.ascontiguousarray(triples[np.sort(first)])
