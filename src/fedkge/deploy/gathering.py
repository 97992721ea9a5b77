"""Combine the run directories of the server and of all sites into one, for attacks, audits and reports.

Only a person who may see all of them can do this: the user who started a trial on one machine, or the organiser of an
exercise that all organisations agree to. The sites become client-0, client-1 and so on, in the order of their names.
`sites.json` maps these names to the sites.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.accounting.accountants import merged
from fedkge.base.errors import RunError
from fedkge.base.short_repr import short_repr
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.release import Arrays
from fedkge.deploy.admission import released_site
from fedkge.deploy.alignment import AlignedGraph
from fedkge.deploy.federation_file import FederationFile
from fedkge.deploy.greetings import Greetings
from fedkge.deploy.joint_alignment_rounds import pseudonyms_of
from fedkge.deploy.keys import read_key
from fedkge.deploy.site_graph import canonical_site, raw_graph, site_graph
from fedkge.deploy.site_settings import SiteSettings
from fedkge.federation.messages import RankingMetrics
from fedkge.federation.records import evaluation_record, with_left_out
from fedkge.federation.union import Union, unite
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.shards import client_names, summarise
from fedkge.graph.shards_on_disk import save_shards
from fedkge.graph.split import Shards
from fedkge.runs.account import continue_account, open_account
from fedkge.runs.directory import LAST_ROUNDS, NUMBERED, SITES, RunDirectory, provenance_of
from fedkge.runs.round import Messages, Parties, Round, Rows, Shared
from fedkge.runs.run import Run
from fedkge.runs.state_file import saved_release
from fedkge.runs.transcript import Transcript
from fedkge.store.durable_files import make_folder, write_atomically

GRAPHS = "graphs"


@dataclass(frozen=True, slots=True)
class PlantedCanaries:
    """Canaries in the sites' data: their file and their numbers."""

    path: Path
    targets: int
    inserted: int
    """How many of them are at the end of the victim's training triples."""


@short_repr("name", "client")
@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """One site's part: its own name, its name in the gathered run, and its graph under its own names in row order."""

    name: str
    client: str
    settings: SiteSettings
    graph: Graph
    directory: RunDirectory

    def own(self, key: str) -> NDArray[Any]:
        """A tensor of the site's final model."""
        return self.directory.read_model()[0][key]

    def counts(self) -> Arrays:
        """The arrays of the site's release that scores need, in the order of its rows; empty without such a release."""
        defence = chosen_defence(self.directory.read_configuration()[0])
        released = saved_release(self.directory.checkpoints / f"{self.name}.safetensors", defence)
        return released.model_arrays() if released else {}


def gather(
    settings: FederationFile, sites: Sequence[SiteSettings], out: Path, canaries: PlantedCanaries | None = None
) -> Path:
    """Gather the run in the new folder `out`; returns the folder."""
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out}: expected a new or empty folder for the gathered run, got one in use; choose another")
    members = _members(sites)
    server = RunDirectory(settings.run)
    greetings = Greetings(server.checkpoints / "greetings").all()
    union = unite(greetings, "entities", settings.minimum_owners)
    make_folder(out)
    configuration = _configuration(server, members, out, canaries)
    trained = [member.graph for member in members]
    inserted = {configuration.experiment.victim: canaries.inserted} if canaries else {}
    given = [_without_last(member.graph, inserted.get(member.client, 0)) for member in members]
    save_shards(Shards(settings.name, tuple(given), summarise(given)), out / GRAPHS)
    directory = RunDirectory(out)
    provenance = provenance_of(trained, configuration, directory.data_key())
    directory.create(configuration, {**provenance, NUMBERED: "by pseudonym"})
    if canaries is not None:
        write_atomically(out / canaries.path.name, canaries.path.read_bytes())
    write_atomically(out / SITES, json.dumps({member.client: member.name for member in members}).encode())
    _write_ledger(directory, members)
    _write_model(directory, configuration, members, union)
    _write_transcript(server, directory, members, union)
    return out


def _members(sites: Sequence[SiteSettings]) -> list[_Site]:
    ordered = sorted(sites, key=lambda site: site.name)
    found = []
    for client, site in zip(client_names(len(ordered)), ordered, strict=True):
        pseudonymise = pseudonyms_of(site, read_key(site.key))
        if pseudonymise is None:
            raise RunError(
                f"{site.name}: its names have no joint pseudonyms yet, so there is nothing to gather; finish the "
                "alignment first"
            )
        directory, raw = RunDirectory(site.run), raw_graph(site)
        canonical = canonical_site(site, raw)
        if site.names_are == "threshold":
            options, ledger = directory.read_configuration()[0], open_account(directory.path)
            if ledger is None:
                raise RunError(
                    f"{directory.path}: {site.name} has released no names yet, so there is nothing to gather"
                )
            canonical, _ = released_site(options, site, raw, canonical, ledger, directory)
        aligned = site_graph(canonical, pseudonymise).aligned
        found.append(_Site(site.name, client, site, _named(aligned, client), directory))
    return found


def _named(aligned: AlignedGraph, name: str) -> Graph:
    return replace(aligned.graph, name=name, entities=aligned.entities, relations=aligned.relations)


def _without_last(graph: Graph, count: int) -> Graph:
    """The graph without its last `count` training triples, which are the victim's canaries."""
    return replace(graph, train=graph.train[: len(graph.train) - count]) if count else graph


def _configuration(
    server: RunDirectory, members: Sequence[_Site], out: Path, canaries: PlantedCanaries | None
) -> Configuration:
    """The server's options with the first site's defence. A run has one configuration; the ledger has every promise."""
    served, _ = server.read_configuration()
    first, _ = members[0].directory.read_configuration()
    kept = {
        "seed": served.experiment.seed,
        "aggregation": served.federation.aggregation,
        "record": served.experiment.record,
    }
    coins = {}
    if canaries is not None:
        coins = {"canaries": canaries.targets, "canary_coins": "independent"}
    options = {
        "data": str((out / GRAPHS).resolve()),
        "columns": "",
        "skip_header": None,
        "clients": len(members),
        **kept,
        **coins,
    }
    options |= {"names": "listed"}  # the gathered graphs have only these names; each promise says where they came from
    return first.updated(**options)


def _write_model(directory: RunDirectory, configuration: Configuration, members: Sequence[_Site], union: Union) -> None:
    entities = Vocabulary.union([member.graph.entities for member in members])
    relations = Vocabulary.union([member.graph.relations for member in members])
    tensors: dict[str, NDArray[Any]] = {}
    shared = len(entities) == len(union.names)
    for member in members:
        table = member.own("entities")
        own = np.array([entities.index[name] for name in member.graph.entities], np.int32)
        kinds = np.array([relations.index[name] for name in member.graph.relations], np.int32)
        order = np.argsort(member.own("relation_ids/client-0"))
        tensors |= {f"own/{member.client}": own, f"relation_ids/{member.client}": kinds}
        tensors[f"relations/{member.client}"] = np.ascontiguousarray(member.own("relations/client-0")[order])
        tensors |= {f"counts/{member.client}/{key}": one for key, one in member.counts().items()}
        if shared:
            whole = tensors.setdefault("entities", np.zeros((len(entities), table.shape[1]), np.float32))
            whole[own] = table
        else:
            tensors[f"entities/{member.client}"] = table
    facts = members[0].directory.read_model()[1]
    directory.write_vocabularies(entities, relations)
    last = {
        member.client: number
        for member in members
        for number in member.directory.read_model()[1].get(LAST_ROUNDS, {}).values()
    }
    directory.write_model(tensors, {"round": facts["round"], **({LAST_ROUNDS: last} if last else {})})
    graphs = [member.graph for member in members]
    run = Run(configuration, graphs, entities, relations, tensors, (), directory.path)
    directory.write_metrics(_metrics(run, facts["round"]))


def _metrics(run: Run, round_number: int) -> list[dict[str, Any]]:
    evaluations = run.evaluate("test")
    scores = {name: RankingMetrics.of(evaluation) for name, evaluation in evaluations.items()}
    if not scores:
        return []
    record = evaluation_record(round_number, "test", scores, {"bytes_up": 0, "bytes_down": 0})
    return [with_left_out(record, evaluations)]


def _write_ledger(directory: RunDirectory, members: Sequence[_Site]) -> None:
    """Copy every promise and every charge, under the clients' names in this run; a torn line stays a charge."""
    ledger = continue_account(directory)
    for member in members:
        found = open_account(member.directory.path)
        if found is None:
            continue
        for name, promise in found.promises.items():
            own = replace(promise, client=member.client)
            for what, once in found.once(name).items():
                ledger.pay_once(replace(own, largest_round=()), what, once.charges, once.value)
            ledger.promise(own)
            for place, entry in enumerate(found.by_round(name)):
                number = -place if entry.round is None else entry.round  # each torn line has a number of its own
                ledger.charge(member.client, number, entry.charges)
                if entry.released or entry.round is None:
                    ledger.release(member.client, number)
            for extra in found.extras(name):
                ledger.charge_extra(member.client, replace(extra, value=None))
                if extra.value is not None:
                    ledger.keep_extra(member.client, extra.name, extra.value)
            if merged(ledger.charges(member.client)) != merged(found.charges(name)):
                raise RunError(f"{member.name}: its ledger could not be copied completely; use the site's own ledger")


def _write_transcript(server: RunDirectory, directory: RunDirectory, members: Sequence[_Site], union: Union) -> None:
    source, target = Transcript(server.path), Transcript(directory.path)
    sites = {member.name: member for member in members}

    def whole(messages: Messages) -> Messages:
        return {sites[name].client: _whole(rows, sites[name], union) for name, rows in messages.items()}

    for number in source.rounds():
        seen = source.read(number, Parties(server=True))
        target.write(
            Round(number, whole(seen.broadcasts), whole(seen.uploads), whole(seen.results), _private(members, number))
        )


def _whole(rows: Mapping[Shared, Rows], member: _Site, union: Union) -> dict[Shared, Rows]:
    """The site's table as sent. Rows that stay at the site are zeros: no other party saw them."""
    table = rows["entities"]
    whole = np.zeros((len(member.graph.entities), table.shape[1]), np.float32)
    whole[union.places[member.name]] = table
    return {"entities": whole}


def _private(members: Sequence[_Site], number: int) -> dict[str, Mapping[Shared, Rows]]:
    """The relations after a round, of the sites that recorded it."""
    found: dict[str, Mapping[Shared, Rows]] = {}
    for member in members:
        transcript = Transcript(member.directory.path)
        if number in transcript.rounds():
            private = transcript.read(number, Parties.of(member.name)).private
            if member.name in private:
                found[member.client] = {"relations": private[member.name]["relations"]}
    return found
