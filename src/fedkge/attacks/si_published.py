"""SI as published: cluster the relation candidates of all pairs of entities, and trust the concentrated clusters.

The n^2 candidates of 7,000 entities would fill 25 GB. Centres are found by k-means on a sample of pairs; one pass
over the pairs, in blocks that are forgotten at once, then measures how far each cluster spreads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Needs, Scores
from fedkge.attacks.si import SERVER, require_structure
from fedkge.attacks.structure import known_rows, newest_round, require_known, table_of
from fedkge.base.errors import ConfigurationError
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.models.kernel import kernel
from fedkge.models.rotate import RotatE
from fedkge.models.scorer import Scorer
from fedkge.models.tables import Table
from fedkge.runs.view import View

PUBLISHED = replace(SERVER, published=True)
BLOCK_NUMBERS = 1 << 24
"""Numbers that a block of the pass holds at a time (64 MB)."""

LARGE = 3e38
"""More than any squared distance; kernels must not meet infinity."""


def differences(entities: Table, pairs: NDArray[np.integer[Any]]) -> Table:
    """TransE's relation candidates t - h of `pairs` of shape (n, 2)."""
    rows: Table = entities[pairs[:, 1]] - entities[pairs[:, 0]]
    return rows


def unit_rows(entities: Table) -> Table:
    """Complex rows with every coordinate on the unit circle (zero counts as phase 0)."""
    half = entities.shape[1] // 2
    phases = np.arctan2(entities[:, half:], entities[:, :half])
    return np.concatenate([np.cos(phases), np.sin(phases)], axis=1)


def rotations(units: Table, pairs: NDArray[np.integer[Any]]) -> Table:
    """RotatE's relation candidates: cosine and sine of the phase of t / h, so that angles have no seam.

    >>> rotations(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0, 1]])).tolist()
    [[0.0, 1.0]]
    """
    half = units.shape[1] // 2
    head, tail = units[pairs[:, 0]], units[pairs[:, 1]]
    real = tail[:, :half] * head[:, :half] + tail[:, half:] * head[:, half:]
    imaginary = tail[:, half:] * head[:, :half] - tail[:, :half] * head[:, half:]
    return np.concatenate([real, imaginary], axis=1)


def k_means(rows: Table, clusters: int, generator: np.random.Generator, iterations: int = 10) -> Table:
    """Centres by Lloyd's algorithm from random rows; a centre that loses all its rows stays where it is.

    >>> sorted(k_means(np.array([[0.0], [1.0], [8.0], [9.0]]), 2, np.random.default_rng(0)).ravel().tolist())
    [0.5, 8.5]
    """
    centres: Table = rows[generator.choice(len(rows), clusters, replace=False)].copy()
    step = max(1, BLOCK_NUMBERS // clusters)
    for _ in range(iterations):
        squares = (centres * centres).sum(axis=1)
        blocks = [rows[first : first + step] @ centres.T for first in range(0, len(rows), step)]
        nearest = np.concatenate([np.argmin(squares - 2 * block, axis=1) for block in blocks])
        order = np.argsort(nearest, kind="stable")
        used, first = np.unique(nearest[order], return_index=True)
        sums = np.add.reduceat(rows[order], first, axis=0)
        moved = centres.copy()
        moved[used] = sums / np.diff(np.append(first, len(rows)))[:, None]
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


@kernel
def _spread_of_differences(lengths, products, squares, first, best, nearest, counts, totals):  # type: ignore[no-untyped-def]
    clusters, tails = products.shape
    for i in range(lengths.shape[0]):
        head = first + i
        best[:] = LARGE
        for c in range(clusters):
            start = squares[c] + 2 * products[c, head]
            for tail in range(tails):
                value = start - 2 * products[c, tail]
                nearer = value < best[tail]
                best[tail] = value if nearer else best[tail]
                nearest[tail] = c if nearer else nearest[tail]
        for tail in range(tails):
            if tail != head:
                counts[nearest[tail]] += 1
                totals[nearest[tail]] += max(lengths[i, tail] + best[tail], 0.0)


@kernel
def _spread_of_rotations(products, squares, length, heads, best, nearest, counts, totals):  # type: ignore[no-untyped-def]
    for i in range(products.shape[0]):
        best[:] = LARGE
        for c in range(products.shape[1]):
            for tail in range(products.shape[2]):
                value = squares[c] - 2 * products[i, c, tail]
                nearer = value < best[tail]
                best[tail] = value if nearer else best[tail]
                nearest[tail] = c if nearer else nearest[tail]
        for tail in range(products.shape[2]):
            if tail != heads[i]:
                counts[nearest[tail]] += 1
                totals[nearest[tail]] += max(length + best[tail], 0.0)


def spread_of_differences(entities: Table, centres: Table) -> Table:
    """Mean squared distance of each cluster's candidates t - h from its centre, over all ordered pairs.

    (t - h).c = t.c - h.c: the products of entities and centres are computed once, and a pair costs additions only.
    """
    entities, centres = entities.astype(np.float32), centres.astype(np.float32)
    products, squares = centres @ entities.T, (centres * centres).sum(axis=1)
    norms = (entities * entities).sum(axis=1)
    counts, totals = np.zeros(len(centres), dtype=np.int64), np.zeros(len(centres))
    best, nearest = np.empty(len(entities), dtype=np.float32), np.empty(len(entities), dtype=np.int32)
    step = max(1, BLOCK_NUMBERS // len(entities))
    for first in range(0, len(entities), step):
        block = slice(first, first + step)
        lengths = norms[block, None] + norms - 2 * (entities[block] @ entities.T)
        _spread_of_differences(lengths, products, squares, first, best, nearest, counts, totals)
    return _mean_or_infinity(totals, counts)


def spread_of_rotations(units: Table, centres: Table, heads: NDArray[np.int64]) -> Table:
    """The same for phases, over all pairs of `heads` with every entity: one matrix product per block of heads."""
    units, centres = units.astype(np.float32), centres.astype(np.float32)
    entities, width = units.shape
    half, clusters = width // 2, len(centres)
    squares = (centres * centres).sum(axis=1)
    real, imaginary = centres[:, :half], centres[:, half:]
    counts, totals = np.zeros(clusters, dtype=np.int64), np.zeros(clusters)
    best, nearest = np.empty(entities, dtype=np.float32), np.empty(entities, dtype=np.int32)
    step = max(1, BLOCK_NUMBERS // (clusters * entities))
    for first in range(0, len(heads), step):
        chosen = heads[first : first + step]
        x, y = units[chosen, None, :half], units[chosen, None, half:]
        turned = np.concatenate([x * real - y * imaginary, x * imaginary + y * real], axis=2)
        products = (turned.reshape(-1, width) @ units.T).reshape(len(chosen), clusters, entities)
        _spread_of_rotations(products, squares, np.float32(half), chosen, best, nearest, counts, totals)
    return _mean_or_infinity(totals, counts)


def _mean_or_infinity(totals: Table, counts: NDArray[np.int64]) -> Table:
    # A cluster of one candidate has no spread to speak of: it is not evidence of concentration.
    return np.where(counts > 1, totals / np.maximum(counts, 1), np.inf)


def concentrated(spread: Table) -> NDArray[np.bool_]:
    """The half of the clusters with the smallest spread: n_r of 2 n_r, as many as there are relations.

    >>> concentrated(np.array([3.0, 1.0, np.inf, 2.0])).tolist()
    [False, True, False, True]
    """
    chosen = np.zeros(len(spread), dtype=bool)
    chosen[np.argsort(spread, kind="stable")[: len(spread) // 2]] = True
    return chosen


def distances(rows: Table, centres: Table) -> Table:
    """Euclidean distance of each row from each centre."""
    squares = (rows * rows).sum(axis=1)[:, None] + (centres * centres).sum(axis=1) - 2 * (rows @ centres.T)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def type_matches(triples: Triples, auxiliary: Triples) -> NDArray[np.bool_]:
    """Step 3: whether auxiliary triples of the target's relation have its head as a head, and its tail as a tail.

    >>> type_matches(np.array([[0, 0, 3], [0, 0, 2]]), np.array([[0, 0, 1], [2, 0, 3]])).tolist()
    [True, False]
    """
    heads = {(int(head), int(relation)) for head, relation in auxiliary[:, [HEAD, RELATION]]}
    tails = {(int(relation), int(tail)) for relation, tail in auxiliary[:, [RELATION, TAIL]]}
    return np.array([(int(h), int(r)) in heads and (int(r), int(t)) in tails for h, r, t in triples], dtype=bool)


@dataclass(frozen=True, slots=True)
class SIPublished:
    """The paper's three steps, with a score whose sign is the paper's decision.

    1. Candidates t - h (TransE) or the phases of t / h (RotatE) of all ordered pairs of the victim's entities.
    2. 2 n_r clusters (n_r: relations of the auxiliary triples); the half with the smallest spread is concentrated.
       With a and b the distances of the target's candidate to the nearest concentrated and the nearest other centre,
       the link score is (b - a) / (b + a), between -1 and 1: above 0 means "in a concentrated cluster".
    3. A relation type that the auxiliary triples do not offer for head and tail costs 2, so that every target
       without a type ranks below every target with one.

    Measured near chance (AUC .45 to .53): kept because it is what was published. `seed` fixes the sample and the
    start of k-means. RotatE's candidates do not decompose, so by default its pass takes `heads` random heads with
    every tail; as many heads as there are entities means all pairs, as in TransE.
    """

    name: str = "si-published"
    seed: int = 0
    sample: int = 20_000
    heads: int = 1_000
    needs: Needs = PUBLISHED

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per triple from the victim's newest upload."""
        require_structure(self, view.scorer)
        if view.auxiliary is None or len(view.auxiliary) == 0:
            raise ConfigurationError(f"attack {self.name!r} needs auxiliary triples: set --auxiliary to at least 1")
        upload = table_of(view, newest_round(view, self.name, "upload"), "upload")
        require_known(upload, triples, self.name)
        clusters = 2 * len(np.unique(view.auxiliary[:, RELATION]))
        centres, spread = self.cluster(view.scorer, upload[known_rows(upload)], clusters)
        chosen = concentrated(spread)
        pairs = triples[:, [HEAD, TAIL]]
        rows = rotations(unit_rows(upload), pairs) if isinstance(view.scorer, RotatE) else differences(upload, pairs)
        apart = distances(rows, centres)
        near, other = apart[:, chosen].min(axis=1), apart[:, ~chosen].min(axis=1)
        link = (other - near) / np.maximum(other + near, 1e-12)
        return np.asarray(link - 2.0 * ~type_matches(triples, view.auxiliary), dtype=np.float64)

    def cluster(self, scorer: Scorer, entities: Table, clusters: int) -> tuple[Table, Table]:
        """Centres of the candidates of all pairs of `entities`, and the spread of each cluster."""
        generator = np.random.default_rng(self.seed)
        count = len(entities)
        possible = count * (count - 1)
        if possible < clusters:
            raise ConfigurationError(
                f"attack {self.name!r}: {clusters} clusters need as many pairs of entities, got {possible}"
            )
        numbers = generator.choice(possible, min(possible, max(self.sample, clusters)), replace=False)
        heads, tails = np.divmod(numbers, count - 1)
        pairs = np.stack([heads, tails + (tails >= heads)], axis=1)
        if not isinstance(scorer, RotatE):
            centres = k_means(differences(entities, pairs), clusters, generator)
            return centres, spread_of_differences(entities, centres)
        units = unit_rows(entities)
        centres = k_means(rotations(units, pairs), clusters, generator)
        chosen = np.sort(generator.choice(count, min(count, self.heads), replace=False))
        return centres, spread_of_rotations(units, centres, chosen)
