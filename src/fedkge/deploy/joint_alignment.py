"""Joint pseudonyms: H(name)^(k1 k2 ... kn), where each site has one exponent and no party has two.

A site blinds its points with an exponent for this list alone and sends them round the ring of all other sites. Each of
them raises the points to its own exponent. The site then removes the blinding and applies its own exponent. Every site
gets pseudonyms of its own names only; equal names have equal pseudonyms. The server may carry the messages.

Guarantees, if one site keeps its exponent secret: nobody can run a dictionary attack offline, not even all other sites
and the server together. They can try names in the ring, where each site serves one list of each other site, up to
`most_names` names. The same list gets the same answer again and reveals nothing new, so a broken ring can be repeated.
Lists carry a tag under the consortium key and the ring's sites. So a server alone cannot insert names of its own, nor
announce different rings to different sites.
Not covered: a site that uses different exponents spoils matches; the `check` name detects that with some probability.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedkge.base.errors import DataError, PrivacyError
from fedkge.base.short_repr import short_repr
from fedkge.deploy.alignment import PSEUDONYM_BYTES
from fedkge.deploy.group import POINT_BYTES, cut, hash_to_point, over, points_of, raised, scalar_from
from fedkge.deploy.keys import Key
from fedkge.runs.round import Shared

MOST_NAMES = 1_000_000
CHECK = "\x00fedkge check"
"""A name in every list, at a position that only its site knows; its pseudonym is the same at all sites."""


@dataclass(frozen=True, slots=True)
class RingList:
    """A list on its way round the ring: its site, the sites that have raised it, and the points as one byte string."""

    federation: str
    origin: str
    kind: Shared
    raised_by: tuple[str, ...]
    points: bytes
    tag: bytes = b""

    @property
    def content(self) -> bytes:
        """The bytes that the tag authenticates."""
        texts = (self.federation, self.origin, self.kind, str(len(self.raised_by)), *self.raised_by)
        head = b"".join(len(data).to_bytes(8, "big") + data for data in (text.encode() for text in texts))
        return head + hashlib.sha256(self.points).digest()


@dataclass(frozen=True, slots=True)
class Ring:
    """The values that all sites of an alignment agree on."""

    federation: str
    sites: tuple[str, ...]
    most_names: int = MOST_NAMES

    def __post_init__(self) -> None:
        if len(self.sites) < 2 or len(set(self.sites)) != len(self.sites):
            raise DataError(f"a ring needs at least 2 different sites, got {list(self.sites)}")

    def next_site(self, message: RingList) -> str:
        """The site that gets the list next; at the end, its origin.

        >>> Ring("study", ("a", "b", "c")).next_site(RingList("study", "b", "entities", ("c",), b""))
        'a'
        """
        start = self.sites.index(message.origin)
        return self.sites[(start + 1 + len(message.raised_by)) % len(self.sites)]

    def way(self, origin: str) -> tuple[str, ...]:
        """The sites that raise a list of `origin`, in order."""
        start = self.sites.index(origin)
        return self.sites[start + 1 :] + self.sites[:start]


@short_repr()
@dataclass(frozen=True, slots=True)
class _Waiting:
    """This site's own list on its way: the names in the order sent, the blinding exponent and the sent points."""

    names: tuple[str, ...]
    hiding: bytes
    sent: bytes


def exponent_of(key: Key) -> bytes:
    """The exponent that a site's own key file (kind `EXPONENT`) stands for.

    >>> len(exponent_of(Key(bytes(range(32)))))
    32
    """
    return scalar_from(hashlib.sha512(key.derive("joint exponent", "").secret).digest())


class Party:
    """One site of a joint alignment. `served` is the record from before a crash, if there is one.

    The exponent is as secret as the key. After the alignment it is not needed any more. If the site destroys it, nobody
    can ever try out names, and no name can be added.
    """

    def __init__(
        self,
        name: str,
        ring: Ring,
        key: Key,
        exponent: bytes,
        served: Mapping[tuple[str, Shared], str] | None = None,
    ) -> None:
        if name not in ring.sites:
            raise DataError(f"{name!r} is not among the sites of the ring: {', '.join(ring.sites)}")
        self.name, self._ring, self._exponent = name, ring, exponent
        self._key = key.derive(f"joint alignment {json.dumps(ring.sites)}", ring.federation)
        self._waiting: dict[Shared, _Waiting] = {}
        self.served: dict[tuple[str, Shared], str] = dict(served or {})
        """The digest of each list that this site has raised; the caller saves it on disk before an answer leaves."""

    def begin(self, kind: Shared, names: Sequence[str]) -> RingList:
        """The list of these canonical names, blinded and in secret order, for the next site.

        The blinding and the order follow from the exponent, the ring and the names. So the same names give the same
        list, also after a crash; other names give a list that cannot be compared with it.
        """
        if len(set(names)) != len(names) or not 0 < len(names) <= self._ring.most_names:
            raise DataError(f"{self.name}: expected 1 to {self._ring.most_names} different names, got {len(names)}")
        before = self._waiting.get(kind)
        if before and {*before.names} != {*names, CHECK}:
            raise PrivacyError(f"{self.name}: its {kind} changed after it sent its list; each list goes round once")
        secret = self._secret_of(kind, names)
        order = sorted([*names, CHECK], key=lambda name: secret.digest(name.encode()))
        hiding = scalar_from(hashlib.sha512(secret.secret).digest())
        points = b"".join(raised((hash_to_point(self._domain(kind), name) for name in order), hiding))
        self._waiting[kind] = _Waiting(tuple(order), hiding, points)
        return self._signed(RingList(self._ring.federation, self.name, kind, (), points))

    def pass_on(self, message: RingList) -> RingList:
        """Another site's list, raised to this site's exponent. Each site gets one list served; it may be repeated."""
        self._check(message)
        expected = self._ring.way(message.origin) if message.origin in self._ring.sites else ()
        done = len(message.raised_by)
        if message.raised_by != expected[:done] or done >= len(expected) or expected[done] != self.name:
            raise PrivacyError(f"{self.name}: the list of {message.origin!r:.40} must not come to this site now")
        digest = hashlib.sha256(message.content).hexdigest()
        if self.served.get((message.origin, message.kind), digest) != digest:
            raise PrivacyError(
                f"{self.name}: another list of {message.origin}'s {message.kind} was served already; this may be an "
                "attempt to try out names"
            )
        points = points_of(message.points)
        self.served[message.origin, message.kind] = digest
        return self._signed(
            replace(
                message,
                raised_by=(*message.raised_by, self.name),
                points=b"".join(raised(points, self._exponent)),
            )
        )

    def finish(self, message: RingList) -> Mapping[str, str]:
        """The pseudonym of each name in the returned list; the check name's pseudonym is under `CHECK`."""
        self._check(message)
        waiting = self._waiting.get(message.kind)
        if waiting is None or message.origin != self.name or message.raised_by != self._ring.way(self.name):
            raise PrivacyError(f"{self.name}: expected its own list from the last site of the ring, got another list")
        points = points_of(message.points)
        if len(points) != len(waiting.names) or set(points) & set(cut(waiting.sent)):
            raise PrivacyError(
                f"{self.name}: sent {len(waiting.names)} names, got {len(points)} points or unraised ones"
            )
        final = raised(points, over(self._exponent, waiting.hiding))
        domain = self._domain(message.kind).encode()
        made = (hashlib.sha256(domain + point).digest()[:PSEUDONYM_BYTES].hex() for point in final)
        return dict(zip(waiting.names, made, strict=True))

    def _secret_of(self, kind: Shared, names: Sequence[str]) -> Key:
        """The secret for one list of this site in one ring."""
        listed = hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()
        purpose = json.dumps(["joint hiding", kind, self._ring.sites, listed])
        return Key(self._exponent).derive(purpose, self._ring.federation)

    def _domain(self, kind: Shared) -> str:
        return f"fedkge joint 1 {kind} {self._ring.federation}"

    def _signed(self, message: RingList) -> RingList:
        return replace(message, tag=self._key.digest(message.content))

    def _check(self, message: RingList) -> None:
        if message.federation != self._ring.federation or message.kind not in ("entities", "relations"):
            raise PrivacyError(
                f"{self.name}: expected entities or relations of {self._ring.federation!r}, got a list of another "
                "federation or kind"
            )
        if len(message.points) > POINT_BYTES * (self._ring.most_names + 1):
            raise PrivacyError(
                f"{self.name}: {message.origin!r:.40} sends {len(message.points) // POINT_BYTES:,} points, this site "
                f"serves at most {self._ring.most_names:,} names"
            )
        if not hmac.compare_digest(self._key.digest(message.content), message.tag):
            raise PrivacyError(
                f"{self.name}: the list of {message.origin!r:.40} has a wrong tag; do all sites have the same key?"
            )


def go_round(
    parties: Mapping[str, Party], ring: Ring, kind: Shared, names: Mapping[str, Sequence[str]]
) -> dict[str, Mapping[str, str]]:
    """Run the whole protocol in one process: for tests, measurements and as its description.

    >>> from fedkge.deploy.group import fresh_scalar
    >>> ring, key = Ring("study", ("a", "b", "c")), Key.fresh()
    >>> parties = {site: Party(site, ring, key, fresh_scalar()) for site in ring.sites}
    >>> made = go_round(parties, ring, "entities", {"a": ["fever"], "b": ["fever", "cough"], "c": ["rash"]})
    >>> made["a"]["fever"] == made["b"]["fever"], made["a"]["fever"] == made["c"]["rash"]
    (True, False)
    """
    made: dict[str, Mapping[str, str]] = {}
    for origin in ring.sites:
        message = parties[origin].begin(kind, names[origin])
        while (site := ring.next_site(message)) != origin:
            message = parties[site].pass_on(message)
        made[origin] = parties[origin].finish(message)
    if len({pseudonyms[CHECK] for pseudonyms in made.values()}) != 1:
        raise PrivacyError("the sites' check names differ: a site raised to different exponents")
    return {site: {name: made[site][name] for name in names[site]} for site in ring.sites}
