"""Match the rows of equal entities between sites, without a name leaving a site.

A site replaces a name by HMAC-SHA256(key, canonical name). Equal names give equal pseudonyms. A party without the
consortium key can neither read them nor try out names. The server finds the union and the owners of each row.

Guarantees against all parties without the key: pseudonyms are indistinguishable from random text; pseudonyms of
entities, of relations and of other federations cannot be matched with each other; a site's list is in the order of its
pseudonyms, so the order reveals nothing about its triples; the server cannot invent an owner (`Witness`).
Not hidden: how many names each site has, and which pseudonyms which sites share. A site that colludes with the server
gives it the key and so the names of all sites; `joint_alignment` prevents this offline dictionary attack.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError, PrivacyError
from fedkge.base.short_repr import short_repr
from fedkge.deploy.keys import Key
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.renumbering import renumbered
from fedkge.runs.round import Shared

Places: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

PSEUDONYM_BYTES = 16
"""Half of the digest: among a billion names, the probability of a collision is below 1e-20."""
LEAST_OWNERS = 2
_PSEUDONYM = re.compile(r"[0-9a-f]{32}")
assert 2 * PSEUDONYM_BYTES == 32  # noqa: S101 - the pattern above


def pseudonyms(key: Key, federation: str, kind: Shared, names: Sequence[str]) -> list[str]:
    """The pseudonyms of canonical names, in the order of the names.

    >>> key = Key(bytes(range(32)))
    >>> first, second = pseudonyms(key, "study", "entities", ["aspirin", "fever"])
    >>> first == pseudonyms(key, "study", "entities", ["aspirin"])[0]
    True
    >>> first == pseudonyms(key, "study", "relations", ["aspirin"])[0]
    False
    """
    own = key.derive(f"pseudonyms of {kind}", federation).secret
    return [hmac.digest(own, name.encode(), "sha256")[:PSEUDONYM_BYTES].hex() for name in names]


def fingerprint(key: Key, federation: str, agreement: str) -> str:
    """The server compares this value to check that all sites have the same key and the same rules for names.

    It reveals only whether two sites agree. The key has 256 random bits, so nobody can try keys. It depends on the
    federation's name, so it does not link federations. It does not prove that a site has the key: anyone who has seen
    it can repeat it.

    >>> one, other = Key(bytes(range(32))), Key(bytes(range(1, 33)))
    >>> fingerprint(one, "study", "NFC") == fingerprint(other, "study", "NFC")
    False
    """
    return key.derive("fingerprint", federation).digest(agreement.encode())[:8].hex()


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class AlignedGraph:
    """A site's graph under pseudonyms, with rows in the order of the pseudonyms, and the names in the same order."""

    graph: Graph
    entities: Vocabulary
    relations: Vocabulary


def aligned_graph(graph: Graph, entities: Sequence[str], relations: Sequence[str]) -> AlignedGraph:
    """The graph under these pseudonyms (one per name, in the graph's order), sorted by them.

    A graph numbers names in the order of its file, and neighbours in a file are often neighbours in a triple. That
    order must not leave the site. Sorting by pseudonym replaces it by a random order.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    >>> made = aligned_graph(graph, ["ff", "00"], ["11"])
    >>> list(made.graph.entities), list(made.entities), made.graph.train.tolist()
    (['00', 'ff'], ['b', 'a'], [[1, 0, 0]])
    """
    of_entities, of_relations = _order(entities, "entities"), _order(relations, "relations")
    made = renumbered(
        graph,
        Vocabulary(tuple(entities[i] for i in of_entities)),
        Vocabulary(tuple(relations[i] for i in of_relations)),
        (np.argsort(of_entities).astype(np.int32), np.argsort(of_relations).astype(np.int32)),
    )
    return AlignedGraph(
        made,
        Vocabulary(tuple(graph.entities[int(i)] for i in of_entities)),
        Vocabulary(tuple(graph.relations[int(i)] for i in of_relations)),
    )


def _order(names: Sequence[str], kind: str) -> Places:
    if len(set(names)) != len(names):
        raise DataError(f"expected different pseudonyms for different {kind}, got the same one twice")
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)


def malformed(names: object, most: int) -> str | None:
    """The reason to refuse a site's list of pseudonyms, or None if it is valid. The reason contains no pseudonym.

    >>> malformed(["aspirin"], most=10)
    'entry 0: expected 32 hexadecimal digits'
    >>> malformed(["0" * 32, "f" * 32], most=10)
    """
    if not isinstance(names, list | tuple):
        return f"expected a list of pseudonyms, got {type(names).__name__}"
    if not 0 < len(names) <= most:
        return f"expected 1 to {most} pseudonyms, got {len(names)}"
    for place, name in enumerate(names):
        if not isinstance(name, str) or not _PSEUDONYM.fullmatch(name):
            return f"entry {place}: expected {2 * PSEUDONYM_BYTES} hexadecimal digits"
        if place and names[place - 1] >= name:
            return f"entry {place}: expected each pseudonym once, in ascending order"
    return None


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class UnionIndex:
    """The server's index: all pseudonyms, sorted (a random order of names), and the owners of each row.

    >>> union = UnionIndex.of({"a": ["00", "11"], "b": ["11", "22"]})
    >>> union.rows, union.places["b"].tolist(), union.owners.tolist(), union.shared("b").tolist()
    (('00', '11', '22'), [1, 2], [1, 2, 1], [True, False])
    """

    rows: tuple[str, ...]
    places: Mapping[str, Places]
    """For each site the row of each of its pseudonyms, in its own order."""
    owners: Places
    """How many sites own each row."""

    @classmethod
    def of(cls, lists: Mapping[str, Sequence[str]]) -> UnionIndex:
        """The index of these sites' lists. Check the lists with `malformed` first."""
        rows = tuple(sorted({name for names in lists.values() for name in names}))
        number = {name: row for row, name in enumerate(rows)}
        places = {
            site: np.fromiter((number[name] for name in lists[site]), np.int64, len(lists[site]))
            for site in sorted(lists)
        }
        owners = np.zeros(len(rows), np.int64)
        for own in places.values():
            owners[own] += 1
        return cls(rows, places, owners)

    def shared(self, site: str, least_owners: int = LEAST_OWNERS) -> Mask:
        """Which of a site's rows have enough owners to be uploaded, in the site's order."""
        found: Mask = self.owners[self.places[site]] >= least_owners
        return found

    def evidence(self, site: str, witnesses: Mapping[str, bytes]) -> dict[str, Witness]:
        """The other sites' tags of the rows of `site`, with which it checks for itself who else owns them."""
        own = self.places[site]
        found: dict[str, Witness] = {}
        for other, places in self.places.items():
            if other == site:
                continue
            _, mine, theirs = np.intersect1d(own, places, assume_unique=True, return_indices=True)
            tags = np.frombuffer(witnesses[other], np.uint8).reshape(-1, PSEUDONYM_BYTES)
            found[other] = Witness(mine.astype(np.int64), tags[theirs].tobytes())
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Another site's statement that it owns some of this site's rows: their places at this site, and a tag for each."""

    places: Places
    tags: bytes


def ownership_tags(key: Key, federation: str, site: str, names: Sequence[str]) -> bytes:
    """A tag for each of a site's pseudonyms, which proves that the site owns the row. Making one needs the key.

    >>> len(ownership_tags(Key(bytes(32)), "study", "a", ["00", "11"]))
    32
    """
    own = key.derive(f"owner {site}", federation).secret
    return b"".join(hmac.digest(own, name.encode(), "sha256")[:PSEUDONYM_BYTES] for name in names)


def confirmed(
    key: Key,
    federation: str,
    site: str,
    names: Sequence[str],
    evidence: Mapping[str, Witness],
    least_owners: int = LEAST_OWNERS,
) -> Mask:
    """The rows that a site may upload: those with enough other owners, proved by their tags.

    The result depends on the lists of names only, never on triples. The site refuses a server that claims an owner
    without a tag. If the server omits owners, the site only uploads less. A party that got the key from a site can
    invent owners.
    """
    counts = np.ones(len(names), np.int64)
    for other, witness in sorted(evidence.items()):
        reason = _unfit(other, site, witness, len(names))
        if reason is None:
            expected = ownership_tags(key, federation, other, [names[place] for place in witness.places])
            reason = None if hmac.compare_digest(expected, witness.tags) else "tags that it did not make"
        if reason:
            raise PrivacyError(
                f"{site}: the server says that {other!r} owns some of the same rows, with {reason}; nothing is "
                "uploaded. Do all sites have the same key? If they do, the server or that site is not honest"
            )
        counts[witness.places] += 1
    found: Mask = counts >= least_owners
    return found


def _unfit(other: str, site: str, witness: Witness, rows: int) -> str | None:
    if other == site:
        return "this site's own word"
    places = witness.places
    if places.ndim != 1 or len(witness.tags) != PSEUDONYM_BYTES * len(places):
        return f"{len(witness.tags)} bytes of tags for {places.size} rows"
    if len(places) and (places.min() < 0 or places.max() >= rows or len(np.unique(places)) != len(places)):
        return "rows that do not exist or are named twice"
    return None
