"""The group in which joint pseudonyms are computed: the prime-order subgroup of Ed25519, from libsodium (PyNaCl).

PyNaCl 1.6.2 has no Ristretto. The subgroup is the same group, but needs one more check, in `points_of`: a point from
another party may lie outside the subgroup and is then refused. (Versions before 1.6.2 carry a libsodium whose check
accepts some such points, CVE-2025-69277; the extra requires 1.6.2.)
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

from fedkge.base.errors import DataError, UnavailableError

POINT_BYTES = 32


def _sodium() -> Any:
    try:
        from nacl import bindings  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise UnavailableError("joint alignment needs PyNaCl: pip install 'fedkge[joint]'") from error
    return bindings


def fresh_scalar() -> bytes:
    """A secret exponent from the operating system, uniform and not 0.

    >>> len(fresh_scalar())
    32
    """
    return scalar_from(secrets.token_bytes(64))


def scalar_from(material: bytes) -> bytes:
    """The exponent from 64 random bytes."""
    scalar: bytes = _sodium().crypto_core_ed25519_scalar_reduce(material)
    if not any(scalar):
        raise DataError("expected random bytes, got a multiple of the group's order")
    return scalar


def hash_to_point(domain: str, name: str) -> bytes:
    """A point with an exponent that nobody knows: the sum of the two halves of SHA-512, each mapped by Elligator 2.

    One map reaches half of the points; the sum of two is indistinguishable from a random point.

    >>> hash_to_point("entities", "fever") == hash_to_point("relations", "fever")
    False
    """
    sodium = _sodium()
    prefix = domain.encode()
    digest = hashlib.sha512(len(prefix).to_bytes(8, "big") + prefix + name.encode()).digest()
    halves = (sodium.crypto_core_ed25519_from_uniform(half) for half in (digest[:32], digest[32:]))
    point: bytes = sodium.crypto_core_ed25519_add(*halves)
    return point


def raised(points: Iterable[bytes], scalar: bytes) -> list[bytes]:
    """Every point to the power of `scalar`.

    >>> point, one, two = hash_to_point("d", "x"), fresh_scalar(), fresh_scalar()
    >>> raised(raised([point], one), two) == raised(raised([point], two), one)
    True
    """
    power = _sodium().crypto_scalarmult_ed25519_noclamp
    return [power(scalar, point) for point in points]


def over(above: bytes, below: bytes) -> bytes:
    """The exponent that removes `below` and applies `above`.

    >>> point, one, two = hash_to_point("d", "x"), fresh_scalar(), fresh_scalar()
    >>> raised(raised([point], one), over(two, one)) == raised([point], two)
    True
    """
    sodium = _sodium()
    scalar: bytes = sodium.crypto_core_ed25519_scalar_mul(above, sodium.crypto_core_ed25519_scalar_invert(below))
    return scalar


def points_of(content: bytes) -> list[bytes]:
    """The points in these bytes, each checked; an invalid or repeated point is an error.

    >>> points_of(bytes(32))
    Traceback (most recent call last):
    ...
    fedkge.base.errors.DataError: point 0 of 1: expected a point of the group, got something else
    """
    if len(content) % POINT_BYTES:
        raise DataError(f"expected whole points of {POINT_BYTES} bytes, got {len(content)} bytes")
    valid, points = _sodium().crypto_core_ed25519_is_valid_point, cut(content)
    for place, point in enumerate(points):
        if not valid(point):
            raise DataError(f"point {place} of {len(points)}: expected a point of the group, got something else")
    if len(set(points)) != len(points):
        raise DataError(f"expected {len(points)} different points, got {len(set(points))}")
    return points


def cut(content: bytes) -> list[bytes]:
    """The points in these bytes, unchecked: for bytes that this site computed itself."""
    return [content[at : at + POINT_BYTES] for at in range(0, len(content), POINT_BYTES)]
