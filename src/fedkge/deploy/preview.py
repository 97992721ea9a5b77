"""What a site would do under some terms, found out at the site, without a network and without writing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedkge.accounting.ledger import Ledger, Promise
from fedkge.accounting.posterior import GuessWorth, guess_worth
from fedkge.accounting.promises import COPIED
from fedkge.accounting.validity import why_not_private
from fedkge.configuration import Configuration
from fedkge.copies import NoisyCopy
from fedkge.copies.holding import Holding, holding_of, measured_elsewhere
from fedkge.deploy.admission import site_fingerprint
from fedkge.deploy.canonical import Report
from fedkge.deploy.keys import read_key
from fedkge.deploy.policy import accept, check_noise
from fedkge.deploy.site_graph import canonical_site
from fedkge.deploy.site_settings import SiteSettings
from fedkge.federation.defence import Defence, defence_of, rounded_up
from fedkge.federation.run import RunDirectory
from fedkge.federation.state_file import saved_release


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """Everything that a privacy officer decides about. The reports hold names: for the site only."""

    site: str
    federation: str
    entities: Report
    relations: Report
    triples: int
    fingerprint: str
    configuration: Configuration
    promise: Promise | None
    worth: GuessWorth | None
    """What a guess about one triple is worth under this promise; None where nothing is guaranteed."""

    drawn: Holding | None
    """How much of the graph the copy holds that this site has drawn, by released values; None before."""

    @property
    def holds(self) -> str:
        """How much of the graph a copy holds: the site's own, or, before it is drawn, copies of other graphs."""
        copy = self.promise.facts.get(COPIED) if self.promise else None
        if self.drawn:
            return self.drawn.words
        return measured_elsewhere(float(copy["epsilon"])) if copy else ""

    @property
    def told(self) -> dict[str, str]:
        """What leaves the site, in plain words."""
        merged = sum(len(names) - 1 for names in self.entities.collisions.values())
        size = self.configuration.public_triples or (rounded_up(self.triples) if self.promise else self.triples)
        rows = "defended" if self.promise else "UNDEFENDED"
        rounds, dimension = self.configuration.rounds, self.configuration.dimension
        return {
            "once": f"{self.entities.names - merged:,} pseudonyms of entities; its number of triples as {size:,}",
            "each round": f"{rows} rows that enough sites own, {dimension} dimensions, at most {rounds} rounds",
        }

    @property
    def promised(self) -> str:
        """The promise in one line."""
        if self.promise is None:
            return "nothing: this site has no defence"
        facts = self.promise.facts
        budget = f"epsilon {self.promise.epsilon:g}" if self.promise.epsilon else "no limit, only a count,"
        noise = f"{_mechanism(facts)}, {facts['rounds']} rounds, {self.promise.accountant}"
        line = f"{budget} at delta {self.promise.delta:g} ({noise}); neighbours: {self.promise.neighbours}"
        reason = why_not_private(self.promise)
        return f"NOT PRIVATE: {reason}; it would count {line}" if reason else line


def _mechanism(facts: Mapping[str, Any]) -> str:
    if copy := facts.get(COPIED):
        return f"counts with noise of scale {copy['profile_scale']:.4g}, answers of epsilon {copy['epsilon']:.4g}"
    return f"noise {facts['noise']:.4g}, clip {facts['clip']:g}"


def preview(site: SiteSettings, terms: Mapping[str, Any]) -> Preview:
    """Read the site's files, judge the terms and calibrate the noise, as at an invitation."""
    configuration = accept(terms, site)
    key = read_key(site.key)
    made = canonical_site(site)
    defence = defence_of(configuration, site.name, made.graph, Ledger.in_memory())
    check_noise(defence, site)
    return Preview(
        site.name,
        site.federation,
        made.entities,
        made.relations,
        len(made.graph.train),
        site_fingerprint(site, key),
        configuration,
        defence.promise(site.name) if defence else None,
        _worth(defence) if defence else None,
        _drawn(RunDirectory(site.run), site.name),
    )


def _drawn(run: RunDirectory, client: str) -> Holding | None:
    """What the copy in the site's run directory holds, by what it released and the public number in its promise."""
    path = run.checkpoints / f"{client}.safetensors"
    if not path.exists() or not run.ledger.exists():
        return None
    copy, promise = saved_release(path), Ledger.read(run.ledger).promises.get(client)
    return holding_of(copy, int(promise.facts["triples"])) if isinstance(copy, NoisyCopy) and promise else None


def _worth(defence: Defence) -> GuessWorth | None:
    """By all rounds that are planned; None for noise that anybody can repeat."""
    options = defence.options
    if options.noise_seed is not None or not defence.accountant.sound:
        return None
    charges = defence.planned(options.rounds)
    epsilon = options.epsilon or defence.accountant.epsilon(charges, options.delta)
    return guess_worth(charges, epsilon, options.delta, adaptive=defence.schedule.adaptive)
