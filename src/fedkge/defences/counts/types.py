"""Types of entities: groups of like profiles, found in what was released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from fedkge.defences.counts.denoising import Profile

Numbers = NDArray[np.float64]

FEATURES = 30
"""Directions in which profiles differ most, by which they are compared."""
SEED = 5
"""Of starts and sketches: they depend on nothing private, and everybody may know them."""
STARTS, TURNS = 4, 20


def find_types(profile: Profile, number: int) -> NDArray[np.int32]:
    """A type from 0 to `number` - 1 for each entity: k-means on the directions of low-rank profiles.

    >>> from fedkge.defences.counts.denoising import Row
    >>> rows = tuple(Row(np.array(who), np.full(2, 9.0), 0.0) for who in ([0, 1], [2, 3], [0, 1], [2, 3]))
    >>> types = find_types(Profile(4, rows), number=2)
    >>> bool(types[0] == types[1] != types[2] == types[3])
    True
    """
    if number == 1:
        return np.zeros(profile.entities, np.int32)
    generator = np.random.default_rng(SEED)
    with threadpool_limits(limits=1, user_api="blas"):  # the same types on every number of cores
        features = _features(profile, generator)
        found = [_k_means(features, number, generator) for _ in range(STARTS)]
    return min(found, key=lambda pair: pair[1])[0]


def _features(profile: Profile, generator: np.random.Generator) -> Numbers:
    """Log-counts less their means, projected on the leading singular vectors (randomised), scaled to length one."""
    lengths = [len(row.entities) for row in profile.rows]
    columns = np.repeat(np.arange(len(lengths)), lengths)
    places = np.concatenate([row.entities for row in profile.rows])
    values = np.concatenate([np.log1p(row.means) - np.log1p(row.rest) for row in profile.rows])
    table = csr_matrix((values, (places, columns)), shape=(profile.entities, len(lengths)))
    means = np.asarray(table.mean(axis=0)).ravel()
    rank = min(FEATURES, len(lengths), profile.entities)
    sketch = generator.standard_normal((len(lengths), min(rank + 10, len(lengths))))
    for _ in range(4):
        basis, _ = np.linalg.qr(table @ sketch - means @ sketch)
        sketch = table.T @ basis - np.outer(means, basis.sum(axis=0))
    left, sizes, _ = np.linalg.svd(sketch.T, full_matrices=False)
    features = (basis @ left * sizes)[:, :rank]
    return np.asarray(features / (np.linalg.norm(features, axis=1, keepdims=True) + 1e-6))


def _k_means(features: Numbers, number: int, generator: np.random.Generator) -> tuple[NDArray[np.int32], float]:
    """Types, and how far entities lie from the middles of theirs."""
    centres = _spread(features, number, generator)
    for _ in range(TURNS):
        types = _squares(features, centres).argmin(axis=1)
        for own in np.unique(types):
            centres[own] = features[types == own].mean(axis=0)
    squares = _squares(features, centres)
    return squares.argmin(axis=1).astype(np.int32), float(squares.min(axis=1).sum())


def _spread(features: Numbers, number: int, generator: np.random.Generator) -> Numbers:
    """First centres, each drawn far from those before it."""
    centres = features[generator.integers(len(features), size=1)]
    while len(centres) < number:
        squares = np.maximum(_squares(features, centres).min(axis=1), 0) + 1e-12
        chosen = generator.choice(len(features), p=squares / squares.sum())
        centres = np.vstack((centres, features[chosen]))
    return centres


def _squares(features: Numbers, centres: Numbers) -> Numbers:
    own = np.square(features).sum(axis=1, keepdims=True)
    return np.asarray(own - 2 * features @ centres.T + np.square(centres).sum(axis=1))
