"""The folders of a federation: those of `init`, and a whole federation on one machine for `try` and for tests."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedkge.base.errors import ConfigurationError
from fedkge.deploy.federation_file import FederationFile, read_federation
from fedkge.deploy.keys import create_key
from fedkge.deploy.provision import provision
from fedkge.deploy.templates import federation_text, site_text
from fedkge.graph.shards import client_names
from fedkge.graph.shards_on_disk import save_shards
from fedkge.graph.split import Shards
from fedkge.store.durable_files import make_folder, write_atomically

FEDERATION, SITE, SHARDS, KEY = "federation.toml", "site.toml", "graphs", "consortium.key"
FEWEST_SITES = 2
"""Rows that only one site owns stay at that site, so a single site would share nothing."""

BUDGET: Mapping[str, Any] = {"defence": "recommended", "epsilon": 8.0}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of a federation are."""

    federation: Path
    sites: Mapping[str, Path]
    settings: FederationFile


def initialise(
    folder: Path, name: str, server: str, port: int, sites: Sequence[str], training: Mapping[str, Any]
) -> Layout:
    """Write federation.toml (or take the one that is there), make the start-up kits, and a site.toml in each."""
    path = folder / FEDERATION
    if not path.exists():
        if len(sites) < FEWEST_SITES:
            raise ConfigurationError(
                f"{path}: no such file yet, so name at least {FEWEST_SITES} sites: --site north --site south"
            )
        make_folder(folder)
        write_atomically(path, federation_text(name, server, port, sites, training).encode())
    settings = read_federation(path)
    provision(settings)
    files = {}
    for site in settings.sites:
        files[site] = settings.kits / site / SITE
        text = site_text(
            site, settings.name, BUDGET, settings.configuration.training.rounds, owners=settings.minimum_owners
        )
        write_atomically(files[site], text.encode())
    return Layout(path, files, settings)


def lay_out(
    folder: Path,
    shards: Shards,
    training: Mapping[str, Any],
    privacy: Mapping[str, Any],
    *,
    federation: Mapping[str, Any] | None = None,
    site: Mapping[str, Any] | None = None,
    owners: int = 2,
) -> Layout:
    """A whole federation in one folder, one site per shard: for one machine, where one person plays all parties.

    `federation` and `site` are further keys of their files. The sites are called client-0, client-1 and so on.
    """
    make_folder(folder)
    save_shards(shards, folder / SHARDS)
    names = client_names(len(shards))
    text = federation_text("try", "localhost", free_port(), names, training)
    text = text.replace("minimum-owners = 2 ", f"minimum-owners = {owners} ")
    for key, value in (federation or {}).items():
        text = _with_key(text, key, value)
    write_atomically(folder / FEDERATION, text.encode())
    settings = read_federation(folder / FEDERATION)
    provision(settings)
    create_key(folder / KEY)
    files = {}
    for number, name in enumerate(names):
        files[name] = settings.kits / name / SITE
        more = {"number": number, **(site or {})}
        entities = str(more.pop("entities", "from-triples"))
        content = site_text(
            name,
            settings.name,
            privacy,
            settings.configuration.training.rounds,
            graph=str(Path("..", "..", SHARDS, name)),
            key=str(Path("..", "..", KEY)),
            owners=owners,
            entities=entities,
            more=more,
        )
        write_atomically(files[name], content.encode())
    return Layout(folder / FEDERATION, files, settings)


def _with_key(text: str, key: str, value: object) -> str:
    """The text with one line replaced, or added at the top."""
    lines = [line for line in text.splitlines() if not line.startswith(f"{key} =")]
    return "\n".join([f"{key} = {value}", *lines]) + "\n"


def free_port() -> int:
    """A port that nobody listens on at the moment.

    >>> 0 < free_port() < 65536
    True
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
