"""Signed requests: a site obeys only its server, and no other party that can reach it.

NVFlare carries an application's messages between any two parties with a certificate, and from any process on a site's
machine. So the server signs each request (Ed25519). The signature covers the federation, the site, the job, a number
that only grows, the token that the answer must carry, and the content. The first three do not travel: the site puts in
its own, so a request for another site, federation or job is a forgery here.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from fedkge.deploy.keys import Key

DOMAIN = b"fedkge signed request 1"
TOKEN_BYTES, DIGEST_BYTES, SIGNATURE_BYTES = 16, 32, 64
_FACTS = struct.Struct(f">Q{TOKEN_BYTES}sQ{DIGEST_BYTES}s")
SEAL_BYTES = _FACTS.size + SIGNATURE_BYTES


class Refusal(Enum):
    """Why a request is dropped. The sender is never told; the words hold nothing that the sender wrote."""

    MALFORMED = "they are no signed requests"
    FORGED = "the server did not sign them for this site, federation and job"
    CHANGED = "their content is not the one that the server signed"
    REPLAYED = "the server signed them, but they were sent before"
    CROWDED = "too many requests of the server wait already"


@dataclass(frozen=True, slots=True)
class Address:
    """The receiver of a request: one site, in one NVFlare job of one federation."""

    federation: str
    site: str
    job: str

    def covered(self, facts: bytes) -> bytes:
        """The bytes that a signature covers; no two addresses or facts give the same."""
        fields = (DOMAIN, self.federation.encode(), self.site.encode(), self.job.encode(), facts)
        return b"".join(len(field).to_bytes(8, "big") + field for field in fields)


@dataclass(frozen=True, slots=True)
class Opened:
    """A request that the server did sign."""

    number: int
    token: str
    content: bytes


class Signer:
    """The server's side: seals the requests of one job.

    >>> signer = Signer(Key(bytes(range(32))), "study", "job-1", iter(range(1, 9)).__next__)
    >>> number, seal = signer.seal("north", bytes(16), b"train")
    >>> number, len(seal) == SEAL_BYTES
    (1, True)
    """

    def __init__(self, key: Key, federation: str, job: str, numbers: Callable[[], int]) -> None:
        self._key = SigningKey(key.secret)
        self._federation, self._job, self._numbers = federation, job, numbers

    def seal(self, site: str, token: bytes, content: bytes) -> tuple[int, bytes]:
        """The number and the seal of a request; the content travels beside it."""
        number = self._numbers()
        facts = _FACTS.pack(number, token, len(content), hashlib.sha256(content).digest())
        signed = self._key.sign(Address(self._federation, site, self._job).covered(facts))
        return number, facts + signed.signature


class Verifier:
    """A site's side: accepts only requests that the server signed for this site.

    >>> key = Key(bytes(range(32)))
    >>> _, seal = Signer(key, "study", "job-1", lambda: 7).seal("north", bytes(16), b"train")
    >>> Verifier(public_key(key), Address("study", "north", "job-1")).open(seal, b"train").number
    7
    >>> Verifier(public_key(key), Address("study", "south", "job-1")).open(seal, b"train")
    <Refusal.FORGED: 'the server did not sign them for this site, federation and job'>
    """

    def __init__(self, public: bytes, address: Address) -> None:
        self._key, self._address = VerifyKey(public), address

    def open(self, seal: object, content: object) -> Opened | Refusal:
        """The request, or the reason to refuse it. It returns for any two values, and checks the content last."""
        if not isinstance(seal, bytes) or not isinstance(content, bytes) or len(seal) != SEAL_BYTES:
            return Refusal.MALFORMED
        facts, signature = seal[: _FACTS.size], seal[_FACTS.size :]
        try:
            self._key.verify(self._address.covered(facts), signature)
        except CryptoError:
            return Refusal.FORGED
        number, token, length, digest = _FACTS.unpack(facts)
        if len(content) != length or not hmac.compare_digest(hashlib.sha256(content).digest(), digest):
            return Refusal.CHANGED
        return Opened(number, token.hex(), content)


def public_key(key: Key) -> bytes:
    """The public key with which the sites check signatures.

    >>> len(public_key(Key(bytes(range(32)))))
    32
    """
    return bytes(SigningKey(key.secret).verify_key)
