"""The random streams of a run: one seed, and one independent stream per party and round.

Streams are derived from the seed and never stored. So a resumed run draws the same numbers as an uninterrupted run.
Initial values, batches and negatives use these streams. The noise of a defence never does.
"""

from __future__ import annotations

import secrets

import numpy as np

SERVER = 0


def fresh_seed() -> int:
    """A seed from the operating system.

    >>> 0 <= fresh_seed() < 2**63
    True
    """
    return secrets.randbits(63)


def server_generator(seed: int, round_number: int) -> np.random.Generator:
    """The server's stream for one round; round 0 draws the start values.

    >>> bool(server_generator(1, 0).integers(100) == server_generator(1, 0).integers(100))
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SERVER, round_number)))


def client_generator(seed: int, number: int, round_number: int) -> np.random.Generator:
    """The stream of client `number` for one round; round 0 draws its start values."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1 + number, round_number)))
