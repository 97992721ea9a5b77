"""The random source that privacy rests on, and the grid that released numbers are rounded to.

The grid is hardening, not proof: the proofs in docs/proofs/ speak of real numbers, and floating-point noise has gaps in
its low bits that can tell one sum from another. Rounding a released number to a multiple of a power of two far
above those bits, and far below the noise (2**-40 of it), hides them; as post-processing it costs no privacy. Noise that
`LazyNoise` settles is on no grid: it is added to tables in single precision.
"""

from __future__ import annotations

import math
import os
import secrets
import ssl
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms.ziggurat import release_on_grid, words_for

GRID_BITS = 40
"""The grid's step is a power of two between 2**-41 and 2**-40 of the noise's deviation."""
BLOCK = 14_000
"""Noise is drawn in blocks that stay in the processor's cache, and that the allocator need not ask the system for."""

_NO_SUMS: NDArray[np.float64] = np.empty((0, 0))
_NO_PLACE: NDArray[np.int32] = np.full(1, -1, np.int32)


class NoiseSource:
    """Random numbers for sampling, selection and noise, from cryptographic counter generators.

    Guarantees:
        A secret source has a fresh key of 128 bits from the operating system for coins (AES-128 in counter mode); its
        Gaussian noise is made of OpenSSL's words (CTR-DRBG with AES-256, seeded by the operating system). It cannot be
        copied, pickled or used by a forked process: the same noise on two sums would cancel in their difference. A
        research source, AES-128 throughout, gives the same numbers for the same seed, so anyone who knows the seed can
        subtract the noise: it protects nobody.

    >>> source = NoiseSource.research(7, 1)
    >>> source.gaussian((2, 3), deviation=0.5).shape, source.is_secret
    ((2, 3), False)
    """

    def __init__(self, key: int, is_secret: bool) -> None:
        self.is_secret = is_secret
        self._process = os.getpid()
        self._generator = np.random.Generator(AESCounter(key=key))

    @classmethod
    def secret(cls) -> NoiseSource:
        """A source that no party can repeat.

        >>> NoiseSource.secret().is_secret
        True
        """
        return cls(secrets.randbits(128), is_secret=True)

    @classmethod
    def research(cls, seed: int, *key: int) -> NoiseSource:
        """A source that `seed` and `key` (a client, a round, ...) repeat; for experiments on public data only.

        >>> one, two = NoiseSource.research(7, 1), NoiseSource.research(7, 2)
        >>> bool(one.gaussian(1, 1.0) == two.gaussian(1, 1.0))
        False
        """
        words = np.random.SeedSequence(seed, spawn_key=key).generate_state(2, np.uint64)
        return cls(int(words[0]) << 64 | int(words[1]), is_secret=False)

    @property
    def generator(self) -> np.random.Generator:
        """The source as NumPy's generator, for distributions that are not here."""
        if self.is_secret and os.getpid() != self._process:
            raise PrivacyError(
                "expected a noise source of this process, got one from before a fork: make one in each process"
            )
        return self._generator

    def gaussian(self, shape: int | tuple[int, ...], deviation: float) -> NDArray[np.float64]:
        """Independent N(0, deviation**2) on the grid."""
        out = np.empty(shape, dtype=np.float64)
        self._release(_NO_SUMS, _NO_PLACE, deviation, 1, out.reshape(1, -1))
        return out

    def gumbel(self, size: int, scale: float) -> NDArray[np.float64]:
        """Independent Gumbel noise of this scale, for a private arg max."""
        _check(scale)
        return self.generator.gumbel(0.0, scale, size)

    def release(
        self,
        sums: NDArray[np.float64],
        places: NDArray[np.int32],
        deviation: float,
        batch: int,
        out: NDArray[np.floating[Any]],
    ) -> None:
        """What leaves a step: sums with fresh N(0, deviation**2), rounded to the noise's grid, over the public batch.

        Row i of `out` is made of row `places[i]` of `sums`, or of noise alone where that is negative: `out` is
        overwritten whole, so that no number is released without noise.

        >>> out = np.full((2, 1), np.nan, np.float32)
        >>> NoiseSource.research(7).release(np.array([[640.0]]), np.array([-1, 0], np.int32), 1e-3, 64, out)
        >>> out.round(3).tolist()
        [[0.0], [10.0]]
        """
        if sums.dtype != np.float64 or len(places) != len(out) or sums.shape[1:] != out.shape[1:]:
            raise PrivacyError(f"expected sums in float64 and a place per row, got {sums.dtype}, {len(places)} places")
        self._release(sums, places, deviation, batch, out)

    def _release(
        self,
        sums: NDArray[np.float64],
        places: NDArray[np.int32],
        deviation: float,
        batch: int,
        out: NDArray[np.floating[Any]],
    ) -> None:
        step, done = grid_step(deviation), 0
        while done < out.size:
            words = self._words(words_for(min(BLOCK, out.size - done)))
            done = release_on_grid(words, sums, places, out, done, deviation, step, float(batch))
            if done < 0:
                raise PrivacyError(f"expected places within {len(sums)} sums, got others: do not release anything")

    def _words(self, count: int) -> NDArray[np.uint64]:
        """Random words; a secret source takes them from OpenSSL, which is three times as fast and erases old state."""
        generator = self.generator  # refuses a forked process
        if self.is_secret:
            return np.frombuffer(ssl.RAND_bytes(8 * count), np.uint64)
        return np.asarray(generator.bit_generator.random_raw(count), np.uint64)

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(
            "a noise source cannot be copied: two copies would draw the same noise; make a second source"
        )


def grid_step(deviation: float) -> float:
    """The step of the grid for noise of this deviation.

    >>> grid_step(1.0) == 2.0**-40, grid_step(3.0) == 2.0**-39
    (True, True)
    """
    _check(deviation)
    return math.ldexp(1.0, math.floor(math.log2(deviation)) - GRID_BITS)


def _check(deviation: Any) -> None:
    if not 1e-200 < deviation < 1e200:
        raise PrivacyError(f"expected a positive deviation of the noise, got {deviation}: it would hide nothing")
