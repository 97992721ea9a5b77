"""Canonical names: a site applies explicit rules, so that equal entities get equal names, and gets a report.

Two sites find a common entity only if the bytes of its names are equal at both. Nothing is guessed: a site chooses the
Unicode form, the case rule and the prefixes. The report says how many names changed and which names became one.
The names and the report stay at the site.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from fedkge.base.errors import DataError
from fedkge.base.short_repr import short_repr
from fedkge.graph import Graph, Vocabulary, distinct_triples
from fedkge.graph.renumbering import renumbered

UnicodeForm: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD", "none"]
Case: TypeAlias = Literal["keep", "fold"]

SHOWN = 5
"""An error message shows this many collisions; the report has them all."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a name becomes canonical: Unicode form and case first, then the longest prefix that fits is replaced, once.

    A prefix is replaced by what it maps to; an empty text strips it. Prefixes follow the same form and case as names.

    >>> Rules(case="fold", prefixes={"http://purl.example/obo/": "obo:"}).apply("HTTP://purl.example/obo/HP_0001")
    'obo:hp_0001'
    """

    unicode_form: UnicodeForm = "NFC"
    case: Case = "keep"
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def apply(self, name: str) -> str:
        """The canonical form of one name."""
        return self._replaced(self._written(name), self._written_prefixes())

    def apply_all(self, names: Iterable[str]) -> list[str]:
        """The canonical forms of many names."""
        prefixes = self._written_prefixes()
        return [self._replaced(self._written(name), prefixes) for name in names]

    @property
    def agreement(self) -> str:
        """The rules that must be equal at all sites of a federation; prefixes may differ, because files do.

        >>> Rules(case="fold").agreement
        'unicode NFC, case fold'
        """
        return f"unicode {self.unicode_form}, case {self.case}"

    def _written_prefixes(self) -> list[tuple[str, str]]:
        written = [(self._written(old), self._written(new)) for old, new in self.prefixes.items()]
        return sorted(written, key=lambda pair: (-len(pair[0]), pair))

    def _replaced(self, name: str, prefixes: Sequence[tuple[str, str]]) -> str:
        for old, new in prefixes:
            if name.startswith(old):
                return self._written(new + name.removeprefix(old))
        return name

    def _written(self, text: str) -> str:
        """Apply form and case until nothing changes: folding can break a form, and a form can bring back a case."""
        while True:
            folded = unicodedata.normalize("NFD", text).casefold() if self.case == "fold" else text
            again = folded if self.unicode_form == "none" else unicodedata.normalize(self.unicode_form, folded)
            if again == text or self.case == "keep":
                return again
            text = again


@short_repr()
@dataclass(frozen=True, slots=True)
class Report:
    """The effect of the rules on one vocabulary of one site. It contains names, so it is for the site only."""

    names: int
    changed: int
    collisions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """From each canonical name to the names that became it, if there are several."""

    @property
    def summary(self) -> str:
        """One line without a name, fit for a log.

        >>> Report(3, 2, {"aspirin": ("Aspirin", "ASPIRIN")}).summary
        '2 of 3 names changed, 2 names became 1'
        """
        became = f", {sum(map(len, self.collisions.values()))} names became {len(self.collisions)}"
        return f"{self.changed} of {self.names} names changed{became if self.collisions else ', none collided'}"


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class CanonicalGraph:
    """A graph under canonical names, with the reports on entities and relations."""

    graph: Graph
    entities: Report
    relations: Report


def canonical_names(names: Sequence[str], rules: Rules, kind: str = "name") -> tuple[list[str], Report]:
    """The canonical form of every name, in order, and the report; an empty canonical name is an error.

    >>> canonical_names(["Aspirin", "aspirin", "Fever"], Rules(case="fold"))[1].collisions
    {'aspirin': ('Aspirin', 'aspirin')}
    """
    canonical = rules.apply_all(names)
    origins: dict[str, list[str]] = {}
    for before, after in zip(names, canonical, strict=True):
        if not after:
            raise DataError(f"{kind} {before!r}: the rules leave an empty name; correct [names.prefixes] in site.toml")
        origins.setdefault(after, []).append(before)
    collisions = {after: tuple(before) for after, before in origins.items() if len(before) > 1}
    changed = sum(before != after for before, after in zip(names, canonical, strict=True))
    return canonical, Report(len(names), changed, collisions)


def canonical_graph(graph: Graph, rules: Rules, merge: bool = False) -> CanonicalGraph:
    """The graph under canonical names. If different names become one, an error lists them, unless `merge` is true.

    Merging makes one row of such names, and one triple of triples that become equal.

    >>> graph = Graph.from_names("tiny", train=[("Aspirin", "treats", "fever"), ("aspirin", "treats", "fever")])
    >>> canonical_graph(graph, Rules(case="fold"), merge=True).graph.train.tolist()
    [[0, 0, 1]]
    """
    entities, of_entities = _vocabulary(graph.entities, rules, "entity", merge)
    relations, of_relations = _vocabulary(graph.relations, rules, "relation", merge)
    if not of_entities.changed and not of_relations.changed:
        return CanonicalGraph(graph, of_entities, of_relations)
    moves = (
        np.array([entities.index[name] for name in rules.apply_all(graph.entities)], np.int32),
        np.array([relations.index[name] for name in rules.apply_all(graph.relations)], np.int32),
    )
    moved = renumbered(graph, entities, relations, moves)
    train = distinct_triples(moved.train)
    made = replace(
        moved,
        train=train,
        valid=distinct_triples(moved.valid),
        test=distinct_triples(moved.test),
        removed_duplicates=graph.removed_duplicates + len(graph.train) - len(train),
    )
    return CanonicalGraph(made, of_entities, of_relations)


def _vocabulary(names: Vocabulary, rules: Rules, kind: str, merge: bool) -> tuple[Vocabulary, Report]:
    canonical, report = canonical_names(names.names, rules, kind)
    if report.collisions and not merge:
        shown = "; ".join(
            f"{' and '.join(map(repr, before))} become {after!r}"
            for after, before in list(report.collisions.items())[:SHOWN]
        )
        more = f" and {len(report.collisions) - SHOWN} more" if len(report.collisions) > SHOWN else ""
        raise DataError(
            f"expected different {kind} names to stay different, got: {shown}{more}; "
            'if they mean the same, set collisions = "merge" under [names] in site.toml, else change the rules'
        )
    return Vocabulary(tuple(dict.fromkeys(canonical))), report
