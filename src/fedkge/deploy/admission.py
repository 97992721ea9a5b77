"""A site accepts an invitation: it fixes its configuration, its graph under pseudonyms and its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.validity import faults
from fedkge.base.errors import ConfigurationError, PolicyError, PrivacyError
from fedkge.base.machine import available_cores
from fedkge.base.short_repr import short_repr
from fedkge.configuration import Configuration, Mark, kebab
from fedkge.defences import OPTIONS, chosen_defence
from fedkge.defences.name_release import FOLDER, NameFiles, kept_names, with_released_names
from fedkge.defences.planning import client_defence, planned_defence
from fedkge.deploy.alignment import fingerprint
from fedkge.deploy.canonical import CanonicalGraph, canonical_names
from fedkge.deploy.keys import Key, read_key
from fedkge.deploy.ledger_ends import check_remembered
from fedkge.deploy.policy import SERVER_MAY_SET, accept, check_noise
from fedkge.deploy.site_graph import Pseudonymise, SiteGraph, canonical_site, raw_graph, site_graph
from fedkge.deploy.site_settings import SiteSettings
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Invite
from fedkge.graph import Graph
from fedkge.graph.ordered import ordered
from fedkge.graph.restricted import restricted
from fedkge.runs.account import continue_account
from fedkge.runs.directory import RunDirectory, provenance_of
from fedkge.runs.transcript import recorded_rounds
from fedkge.store.randomness import fresh_seed

OWN = "client-0"
"""The site's name in its own run directory."""


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """The terms that the site accepted, and everything that follows from its own files."""

    settings: SiteSettings
    configuration: Configuration
    raw: Graph
    site: SiteGraph
    key: Key
    fingerprint: str
    ledger: Ledger | None

    @property
    def recorded(self) -> frozenset[int]:
        """The rounds whose messages the site records for itself."""
        return recorded_rounds(self.settings.record, self.configuration.training.rounds)

    def make_client(self, name: str, directory: RunDirectory) -> Client:
        """The site's Client, in its last state on disk."""
        options, graph = self.configuration, self.site.graph
        threads = options.training.threads or available_cores()
        plan = ClientPlan(options, options.experiment.seed or 0, self.settings.number, ("entities",), threads)
        if self.ledger is not None:
            defence = client_defence(options, name, graph, self.ledger, self.settings.number)
            check_noise(defence, self.settings)
            plan = replace(plan, defence=defence, ledger=self.ledger)
        return Client(name, graph, plan, directory.checkpoints)

    def budget(self, name: str) -> Mapping[str, Any]:
        """The promised and the spent budget, for people to read. `not_private` says why a promise does not hold."""
        if self.ledger is None or name not in self.ledger.promises:
            return {"not_private": "this site has no defence"}
        promise = self.ledger.promises[name]
        budget = {"spent": self.ledger.spent(name), "epsilon": self.ledger.promised(name), "delta": promise.delta}
        reason = "; ".join(map(str, faults(promise)))
        return {**budget, "not_private": reason} if reason else budget

    def rows(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """For each entity and relation of the site's file, its row in the tables."""
        rules = self.settings.names.rules
        made = []
        for kind, raw, own in (
            ("entity", self.raw.entities, self.site.aligned.entities),
            ("relation", self.raw.relations, self.site.aligned.relations),
        ):
            names, _ = canonical_names(raw.names, rules, kind)
            made.append(np.array([own.index[name] for name in names], np.int32))
        return made[0], made[1]


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """An accepted invitation and the site's files as read; the names have no pseudonyms yet."""

    settings: SiteSettings
    configuration: Configuration
    raw: Graph
    released: Graph
    """The raw graph without the names that stay at the site."""
    canonical: CanonicalGraph
    key: Key
    ledger: Ledger | None

    @property
    def fingerprint(self) -> str:
        """The server compares this value to check that all sites have the same key and the same name rules."""
        return site_fingerprint(self.settings, self.key)

    def complete(self, pseudonymise: Pseudonymise, directory: RunDirectory) -> Admission:
        """Replace names by pseudonyms, and begin the run or check that it is the same run."""
        site = site_graph(self.canonical, pseudonymise)
        _same_as_before(self.configuration, self.raw, directory, bound=True)
        return Admission(
            self.settings, self.configuration, self.released, site, self.key, self.fingerprint, self.ledger
        )


def site_fingerprint(settings: SiteSettings, key: Key) -> str:
    """A fingerprint of the key, the kind of alignment and the rules for names."""
    return fingerprint(key, settings.federation, f"{settings.alignment} {settings.names.rules.agreement}")


def prepare(invite: Invite, settings: SiteSettings, directory: RunDirectory) -> Prepared:
    """Check an invitation and read the site's files; a PolicyError if the site does not take part.

    A refusal that depends on the triples reveals something about them. So the site first releases and pays for the
    size that determines the noise. The size stays in the ledger, without a promise, and the next invitation reuses it.
    """
    if invite.federation != settings.federation:
        raise PolicyError(
            f"{settings.name} takes part in {settings.federation!r} and was invited to {invite.federation!r:.70}"
        )
    configuration = _settled(accept(invite.terms, settings), settings, directory)
    read = raw_graph(settings)
    defended = chosen_defence(configuration).keeps_ledger
    raw = ordered(read) if defended else read
    canonical, key = canonical_site(settings, read), read_key(settings.key)
    ledger = _begun(configuration, raw, settings, directory) if defended else None
    if ledger is not None:
        check_remembered(ledger, invite)  # before anything is released, or released again
    released = raw
    if ledger is not None and configuration.privacy.names == "threshold":
        canonical, released = released_site(configuration, settings, raw, canonical, ledger, directory)
    if ledger is not None and not ledger.is_promised(settings.name):
        check_noise(planned_defence(configuration, settings.name, canonical.graph, ledger, settings.number), settings)
    return Prepared(settings, configuration, raw, released, canonical, key, ledger)


def released_site(
    configuration: Configuration,
    settings: SiteSettings,
    raw: Graph,
    canonical: CanonicalGraph,
    ledger: Ledger,
    directory: RunDirectory,
) -> tuple[CanonicalGraph, Graph]:
    """The site's graph with its released names only: under canonical names, and under the names in its file.

    Only released names get pseudonyms. The other names, and every triple that mentions one, stay at the site.
    """
    spelled = canonical_names(raw.entities.names, settings.names.rules, "entity")[0]
    originals = dict(zip(raw.entities, spelled, strict=True))
    files = NameFiles(directory.path / FOLDER)
    graph = with_released_names(
        configuration, settings.name, canonical.graph, ledger, files, settings.number, OWN, originals
    )
    names = kept_names(ledger, settings.name, files, OWN)
    return replace(canonical, graph=graph), raw if names is None else restricted(raw, names)


def _begun(configuration: Configuration, raw: Graph, settings: SiteSettings, directory: RunDirectory) -> Ledger:
    """The ledger of a defended site, after beginning the run or checking that it is the same.

    Terms are binding only after a promise.
    """
    undefended = directory.exists() and not chosen_defence(directory.read_configuration()[0]).keeps_ledger
    found = continue_account(directory) if directory.exists() and not undefended else None
    promised = found is not None and found.is_promised(settings.name)
    _same_as_before(configuration, raw, directory, bound=undefended or promised)
    return found or continue_account(directory)


def _settled(configuration: Configuration, settings: SiteSettings, directory: RunDirectory) -> Configuration:
    """The configuration with the seed that the site drew at the beginning and the site's number of threads."""
    seed = configuration.experiment.seed
    if seed is None:
        seed = directory.read_configuration()[0].experiment.seed if directory.exists() else fresh_seed()
    return configuration.updated(seed=seed, threads=settings.threads)


def _same_as_before(configuration: Configuration, raw: Graph, directory: RunDirectory, bound: bool) -> None:
    """Refuse to continue a run with other data or, if the run is `bound`, with other terms."""
    provenance = provenance_of((raw,), configuration, directory.data_key())
    if not directory.exists():
        directory.create(configuration, provenance)
        return
    saved, known = directory.read_configuration()
    if known.get("data") != provenance["data"]:
        raise PrivacyError(f"{directory.path}: the graph was changed after the run began; restore it")
    if not bound:
        directory.create(configuration, {**provenance, "run": known["run"]})  # the ledger has its size already
        return
    if known.get("configuration") != configuration.identity:
        began_with = saved.as_options()
        changed = sorted(
            key
            for key, value in configuration.as_options().items()
            if value != began_with.get(key) and not OPTIONS[key].has(Mark.NO_EFFECT)
        )
        if own := [kebab(key) for key in changed if key not in SERVER_MAY_SET]:
            raise ConfigurationError(  # not for the server: the values of the site's own options stay at the site
                f"{directory.path}: site.toml was changed after the run began: {', '.join(own)}; restore it"
            )
        began = ", ".join(f"{kebab(key)} {began_with.get(key)}" for key in changed)
        raise PolicyError(f"this run began with other options: {began}; restore them, or name them in site.toml")
