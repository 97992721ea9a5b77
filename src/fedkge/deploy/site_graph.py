"""A site's graph for a federation: read the file, make names canonical, replace them by pseudonyms, sort by these.

The server sees the list of pseudonyms, which depends on the list of names only. If `entities` in site.toml is a list
that was fixed beforehand, no triple can change it. Otherwise the list consists of the graph's names, and a triple with
a new name adds to the list; the promise of a defence does not cover that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedkge.base.errors import DataError
from fedkge.base.plain_files import read_text
from fedkge.base.short_repr import short_repr
from fedkge.deploy.alignment import AlignedGraph, aligned_graph, pseudonyms
from fedkge.deploy.canonical import CanonicalGraph, canonical_graph
from fedkge.deploy.keys import Key
from fedkge.deploy.site_settings import SiteSettings
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.datasets import load
from fedkge.graph.readers import parse_columns
from fedkge.graph.renumbering import Numbers, renumbered
from fedkge.runs.round import Shared

Pseudonymise = Callable[[Shared, Sequence[str]], Sequence[str]]
"""A function from the canonical names of a kind to their pseudonyms, in order."""

SHOWN = 5


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class SiteGraph:
    """The graph that a site trains on, the names behind the pseudonyms, and the report on canonical names."""

    aligned: AlignedGraph
    canonical: CanonicalGraph

    @property
    def graph(self) -> Graph:
        """The graph under pseudonyms."""
        return self.aligned.graph


def raw_graph(site: SiteSettings) -> Graph:
    """The site's graph as in its file. Read it once, so that the site trains on the graph that it checked."""
    return load(site.graph, columns=parse_columns(site.columns), skip_header=site.skip_header)


def canonical_site(site: SiteSettings, graph: Graph) -> CanonicalGraph:
    """The graph from `raw_graph` under canonical names, with the lists and rules of site.toml."""
    lists = {"entities": site.entities, "relations": site.relations}
    fixed = with_names(graph, {kind: read_list(path) for kind, path in lists.items() if isinstance(path, Path)})
    return canonical_graph(fixed, site.names.rules, merge=site.names.collisions == "merge")


def site_graph(canonical: CanonicalGraph, pseudonymise: Pseudonymise) -> SiteGraph:
    """The graph under pseudonyms that `pseudonymise` gives.

    >>> from fedkge.deploy.canonical import Rules
    >>> graph = Graph.from_names("tiny", train=[("aspirin", "treats", "fever")])
    >>> made = site_graph(canonical_graph(graph, Rules()), keyed(Key(bytes(range(32))), "study"))
    >>> len(made.graph.entities[0]), sorted(made.aligned.entities)
    (32, ['aspirin', 'fever'])
    """
    graph = canonical.graph
    entities = pseudonymise("entities", graph.entities.names)
    relations = pseudonymise("relations", graph.relations.names)
    return SiteGraph(aligned_graph(graph, entities, relations), canonical)


def keyed(key: Key, federation: str) -> Pseudonymise:
    """Pseudonyms under the consortium key."""
    return lambda kind, names: pseudonyms(key, federation, kind, names)


def read_list(path: Path) -> tuple[str, ...]:
    """The names in a file, one per line; a repeated name is an error."""
    names = tuple(line for line in read_text(path, DataError, "expected names, one a line").split("\n") if line)
    if not names or len(set(names)) != len(names):
        raise DataError(
            f"{path}: expected different names, one a line, got {len(names)} with {len(set(names))} different"
        )
    return names


def with_names(graph: Graph, lists: Mapping[str, Sequence[str]]) -> Graph:
    """The graph with these lists of "entities" or "relations" for vocabularies; a triple with another name is an error.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    >>> with_names(graph, {"entities": ["c", "b", "a"]}).train.tolist()
    [[2, 0, 1]]
    """
    if not lists:
        return graph
    entities = Vocabulary(tuple(lists.get("entities", graph.entities.names)))
    relations = Vocabulary(tuple(lists.get("relations", graph.relations.names)))
    moves = _places(graph.entities, entities, "entity"), _places(graph.relations, relations, "relation")
    return renumbered(graph, entities, relations, moves)


def _places(names: Vocabulary, listed: Vocabulary, kind: str) -> Numbers:
    missing = [name for name in names if name not in listed]
    if missing:
        shown = ", ".join([*map(repr, missing[:SHOWN]), *(["..."] if len(missing) > SHOWN else [])])
        raise DataError(
            f"the graph has {len(missing)} {kind} names that the site's list does not have ({shown}): remove the "
            "triples, or correct the list without looking at triples"
        )
    return np.array([listed.index[name] for name in names], np.int32)
