"""Joint pseudonyms over the engine: the server carries the sites' lists round, and each site keeps its pseudonyms.

The lists go round once, before the first round. Before an answer leaves, a site writes to disk the sites of the ring
and the lists that it has raised. It writes its own pseudonyms when its list is back. After a crash in between, all
sites repeat the alignment: every site sends the same list and gives the same answers, and a site that has its
pseudonyms keeps them. If a site's names or its exponent have changed since, the other sites refuse. If all sites
agree to start again, all of them remove `ring.json` and `pseudonyms.json` from their run directories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from fedkge.base.errors import PolicyError, PrivacyError, RunError
from fedkge.base.plain_files import read_bytes
from fedkge.deploy.alignment import pseudonyms
from fedkge.deploy.joint_alignment import CHECK, Party, Ring, RingList, exponent_of
from fedkge.deploy.keys import EXPONENT, Key, create_key, read_key
from fedkge.deploy.site_graph import Pseudonymise, keyed
from fedkge.deploy.site_settings import SiteSettings
from fedkge.federation.messages import Align, Aligned, Engine, Failure
from fedkge.runs.round import Shared
from fedkge.store.durable_files import write_atomically

PSEUDONYMS, RECORD = "pseudonyms.json", "ring.json"
T = TypeVar("T")


class _Record(msgspec.Struct, frozen=True):
    """The sites of the ring, and a digest of each list that this site has raised, by origin."""

    sites: tuple[str, ...]
    served: dict[str, str]


def pseudonyms_of(settings: SiteSettings, key: Key) -> Pseudonymise | None:
    """The function from this site's names to pseudonyms; None before a joint alignment has finished."""
    if settings.alignment == "keyed":
        return keyed(key, settings.federation)
    known = _read(settings.run / PSEUDONYMS, dict[str, str], {})
    if not known:
        return None

    def joint(kind: Shared, names: Sequence[str]) -> Sequence[str]:
        if kind == "relations":  # they never leave the site, so the sites need not agree on them
            return pseudonyms(key, settings.federation, kind, names)
        missing = [name for name in names if name not in known]
        if missing:
            raise PrivacyError(
                f"{settings.run / PSEUDONYMS}: {len(missing)} names have no pseudonym; names cannot be added later"
            )
        return [known[name] for name in names]

    return joint


class JointAlignment:
    """A site's part in a joint alignment."""

    def __init__(self, settings: SiteSettings, key: Key, names: Sequence[str]) -> None:
        self._settings, self._key, self._names = settings, key, tuple(names)
        if not settings.exponent.exists():
            if (settings.run / RECORD).exists():
                raise PrivacyError(f"{settings.exponent}: missing, but lists were raised with it; restore it")
            create_key(settings.exponent, EXPONENT)
        self._exponent = exponent_of(read_key(settings.exponent, EXPONENT))
        self._party: Party | None = None

    def handle(self, request: Align) -> Aligned:
        """Begin, raise another site's list, or receive this site's own list. Errors say nothing about names."""
        try:
            return self._handle(request, self._party_among(request.sites))
        except PrivacyError as error:
            raise PolicyError(str(error)) from error

    def _party_among(self, sites: tuple[str, ...]) -> Party:
        """The first request fixes the ring: each new site in it could try one more list of names."""
        known = _read(self._settings.run / RECORD, _Record, _Record((), {}))
        if known.sites and known.sites != sites:
            raise PrivacyError(
                f"{self._settings.name}: expected the ring of {', '.join(known.sites)}, got a request for another ring"
            )
        if self._party is None:
            ring = Ring(self._settings.federation, sites, self._settings.limits.ring_names)
            served: dict[tuple[str, Shared], str] = {
                (origin, "entities"): digest for origin, digest in known.served.items()
            }
            self._party = Party(self._settings.name, ring, self._key, self._exponent, served)
            self._keep(self._party, sites)
        return self._party

    def _keep(self, party: Party, sites: tuple[str, ...]) -> None:
        served = {origin: digest for (origin, _), digest in sorted(party.served.items())}
        write_atomically(self._settings.run / RECORD, json.dumps({"sites": sites, "served": served}).encode())

    def _handle(self, request: Align, party: Party) -> Aligned:
        if not request.origin:
            return _outward(party.begin("entities", self._names))
        message = RingList(
            self._settings.federation, request.origin, "entities", request.raised_by, request.points, request.tag
        )
        if request.origin == self._settings.name:
            return Aligned(self._settings.name, check=self._finished(message, party))
        answer = party.pass_on(message)
        self._keep(party, request.sites)
        return _outward(answer)

    def _finished(self, message: RingList, party: Party) -> str:
        """The pseudonym of the check name, with all others on disk. They are computed once and never changed."""
        path = self._settings.run / PSEUDONYMS
        if not path.exists():
            write_atomically(path, json.dumps(dict(party.finish(message))).encode())
        known = _read(path, dict[str, str], {})
        if CHECK not in known:
            raise RunError(f"{path}: expected a pseudonym of the check name, got none; restore it")
        return known[CHECK]


def carry(engine: Engine, sites: Sequence[str], timeout_seconds: float) -> None:
    """The server's part: pass all lists to their next sites at once, until each list is back at its origin."""
    ring = Ring("carried", tuple(sorted(sites)))
    lists = _exchange(engine, {site: Align(ring.sites) for site in ring.sites}, timeout_seconds)
    for _ in ring.sites:
        requests = {}
        for answer in lists:
            way = RingList("carried", answer.origin, "entities", answer.raised_by, b"")
            requests[ring.next_site(way)] = Align(
                ring.sites, answer.origin, answer.raised_by, answer.points, answer.tag
            )
        lists = _exchange(engine, requests, timeout_seconds)
    if len({answer.check for answer in lists}) != 1:
        raise RunError("the sites' check names differ: a site raised to different exponents; nothing was trained")


def _exchange(engine: Engine, requests: Mapping[str, Align], timeout_seconds: float) -> list[Aligned]:
    found = []
    for site, reply in sorted(engine.exchange(dict(requests), timeout_seconds=timeout_seconds).items()):
        if not isinstance(reply, Aligned):
            reason = reply.reason if isinstance(reply, Failure) else f"got {type(reply).__name__}"
            raise RunError(f"the joint alignment stopped at {site}: {reason}")
        if reply.origin != (requests[site].origin or site) or reply.raised_by != _way_after(site, requests[site]):
            expected = requests[site].origin or site
            raise RunError(f"the joint alignment stopped at {site}: expected the list of {expected}, got another")
        found.append(reply)
    return found


def _way_after(site: str, request: Align) -> tuple[str, ...]:
    """The sites that have raised a list when `site` answers: none at its beginning and its end, else one more."""
    return (*request.raised_by, site) if request.origin not in ("", site) else ()


def _outward(message: RingList) -> Aligned:
    return Aligned(message.origin, message.raised_by, message.points, message.tag)


def _read(path: Path, form: type[T], empty: T) -> T:
    """The content of one of this site's files, or `empty` before the file is written."""
    if not path.exists():
        return empty
    try:
        return msgspec.json.decode(read_bytes(path, RunError, "restore it"), type=form)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: expected a file that fedkge wrote, got a damaged one ({error}); restore it") from error
