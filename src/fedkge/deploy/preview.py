"""What a site would do under given terms. It is computed at the site, without a network and without writing a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedkge.accounting.ledger import Ledger, Promise
from fedkge.accounting.posterior import GuessWorth, guess_worth
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence, promised_defence
from fedkge.defences.advance import assume_exact_size, size_deviation
from fedkge.defences.defence import ClientDefence
from fedkge.defences.name_release import assume_names, name_threshold
from fedkge.defences.planning import client_defence
from fedkge.defences.release import Holding
from fedkge.deploy.admission import site_fingerprint
from fedkge.deploy.canonical import Report
from fedkge.deploy.keys import read_key
from fedkge.deploy.policy import accept, check_noise
from fedkge.deploy.site_graph import canonical_site, raw_graph
from fedkge.deploy.site_settings import SiteSettings
from fedkge.graph import HEAD, TAIL, Graph
from fedkge.graph.restricted import mentions, sole_mentions
from fedkge.runs.account import open_account
from fedkge.runs.directory import RunDirectory
from fedkge.runs.state_file import saved_release


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """Everything that a privacy officer needs for a decision. For the site only: the reports contain names, and the
    noise is calibrated to the exact number of triples. A federation uses a noisy number, drawn when the site joins.
    """

    site: str
    federation: str
    entities: Report
    relations: Report
    triples: int
    fingerprint: str
    configuration: Configuration
    promise: Promise | None
    worth: GuessWorth | None
    """How well an adversary can guess one triple under this promise; None if nothing is guaranteed."""

    drawn: Holding | None
    """How much of the graph this site's release contains, computed from released values; None before the release."""
    held_elsewhere: str
    """How much such releases of other graphs contained; blank if the defence releases no graph."""

    size_deviation: float | None
    """The standard deviation of the noise on the number of triples; None where that is public."""
    name_threshold: float | None
    """How many triples must mention a name, with noise, before it is released; None without such a threshold."""
    sole_mentions: int
    """Training triples that are the only mention of an entity."""
    staying: tuple[int, int]
    """Names below the threshold (without its noise), and training triples with such a name. They stay at the site."""

    @property
    def holds(self) -> str:
        """How much of the graph a synthetic graph contains: this site's, or before it those of other graphs."""
        return self.drawn.words if self.drawn else self.held_elsewhere

    @property
    def leaves(self) -> dict[str, str]:
        """What leaves the site, in plain words."""
        merged = sum(len(names) - 1 for names in self.entities.collisions.values())
        rows = "defended" if self.promise else "UNDEFENDED"
        rounds, dimension = self.configuration.training.rounds, self.configuration.model.dimension
        end = "; a random number for the end of its ledger, and its number of releases" if self.promise else ""
        return {
            "once": f"{self._pseudonyms(self.entities.names - merged)}; {self._size}",
            "each round": f"{rows} rows that enough sites own, {dimension} dimensions, at most {rounds} rounds{end}",
        }

    def _pseudonyms(self, names: int) -> str:
        """Under a threshold without any number: here it would follow from the exact graph, and others read this."""
        if self.name_threshold is not None:
            share = self.configuration.privacy.names_share * (self.configuration.privacy.epsilon or 0.0)
            return f"pseudonyms of entities that many triples mention, by a noisy count (epsilon {share:g})"
        return f"{names:,} pseudonyms of entities"

    @property
    def names_follow(self) -> str:
        """What the names reveal about triples, for the site only."""
        share = 100 * self.sole_mentions / max(1, self.triples)
        alone = f"{self.sole_mentions:,} of {self.triples:,} triples ({share:.1f} %) are the only mention of a name"
        if self.configuration.privacy.names == "listed":
            return "from a list: they reveal nothing about triples, if the list was made without looking at triples"
        if self.name_threshold is not None:
            (names, triples), least = self.staying, self.name_threshold
            home = f"about {names:,} of {self.entities.names:,} names, and {triples:,} triples with one, stay out"
            return f"by a threshold of {least:g} mentions with noise, paid for: {home} of everything; {alone}"
        return f"from triples: {alone}, and such triples are NOT protected"

    @property
    def _size(self) -> str:
        spread = self.size_deviation
        if spread is not None:
            return f"its number of triples with noise (standard deviation {spread:.3g}), drawn when it joins"
        return f"its number of triples as {self.configuration.privacy.public_triples or self.triples:,}"


def _assume_names(configuration: Configuration, client: str, graph: Graph, ledger: Ledger) -> tuple[int, int]:
    """Charge the names without drawing any; how many names, and triples with them, do not reach the threshold."""
    below = mentions(graph.train, len(graph.entities)) < assume_names(configuration, client, graph, ledger)
    return int(below.sum()), int(below[graph.train[:, [HEAD, TAIL]]].any(axis=1).sum())


def preview(site: SiteSettings, terms: Mapping[str, Any]) -> Preview:
    """Read the site's files, check the terms and calibrate the noise, as for an invitation; no noise is drawn."""
    configuration = accept(terms, site)
    key = read_key(site.key)
    made = canonical_site(site, raw_graph(site))
    ledger, staying = Ledger.in_memory(), (0, 0)
    defended = chosen_defence(configuration).keeps_ledger
    if defended:
        assume_exact_size(configuration, site.name, made.graph, ledger)
        if configuration.privacy.names == "threshold":
            staying = _assume_names(configuration, site.name, made.graph, ledger)
    defence = client_defence(configuration, site.name, made.graph, ledger, site.number)
    check_noise(defence, site)
    paid = ledger.charges(site.name) if defended else ()
    return Preview(
        site.name,
        site.federation,
        made.entities,
        made.relations,
        len(made.graph.train),
        site_fingerprint(site, key),
        configuration,
        defence.promise(site.name),
        _worth(defence) if defended else None,
        _drawn(RunDirectory(site.run), site.name),
        defence.holds,
        size_deviation(paid),
        name_threshold(paid),
        sole_mentions(made.graph),
        staying,
    )


def _drawn(run: RunDirectory, client: str) -> Holding | None:
    """What the synthetic graph of this run contains, from its released values and the promise's public number."""
    path = run.checkpoints / f"{client}.safetensors"
    ledger = open_account(run.path)
    if ledger is None or not path.exists():
        return None
    promise = ledger.promises.get(client)
    released = saved_release(path, promised_defence(promise)) if promise else None
    return released.holding(promise.plan.triples) if released and promise else None


def _worth(defence: ClientDefence) -> GuessWorth | None:
    """For all planned rounds; None if the noise comes from a seed that anybody can repeat."""
    options = defence.options
    if options.privacy.noise_seed is not None or not defence.accountant.sound:
        return None
    charges = defence.planned(options.training.rounds)
    epsilon = options.privacy.epsilon or defence.accountant.epsilon(charges, defence.delta)
    return guess_worth(charges, epsilon, defence.delta, adaptive=defence.adaptive)
