"""The commented files that `fedkge federation init` writes: federation.toml, and a site.toml for each site."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

FEDERATION = """\
# A fedkge federation: this file stays on the coordinating machine. `fedkge server federation.toml` runs it.
# Paths are relative to this file. docs/how-to/three-machines.md walks through all of it.

name = {name}            # the sites' site.toml must say the same
server = {server}        # the name under which the sites reach this machine; it is in the certificate
port = {port}            # the only port that must be open, on this machine only
sites = {sites}

kits = "kits"            # start-up kits; kits/authority holds the key that signs certificates: keep it off-line
run = "run"              # checkpoints, transcript and model of the server

round-seconds = 3600     # the round leaves out a site that has not answered by then; the site may come back
silence-seconds = 120    # the round leaves out a site that sends no sign of life for this long
minimum-owners = 2       # rows that fewer sites own stay at the sites; at least every site's least-owners
wire = "float32"         # or "float16": half the bytes; no loss of MRR was found
# largest-message = 2147483648   # bytes; a larger message is refused

# Options of `fedkge train` that a server may set. Each site decides all options that privacy depends on. A defence
# here only chooses options that train well under its noise (dimension, batch, rate); it does not bind the sites.
[training]
{training}
"""

SITE = """\
# {name}: the decisions of this organisation. Nobody else sees or changes this file.
# `fedkge client site.toml` joins the federation. Paths are relative to this file.

name = {quoted}          # as in the certificate of the start-up kit
federation = {federation}
graph = {graph}          # your triples: file or folder; they never leave this machine
# Where the names of your entities come from. Names leave as pseudonyms. If only one triple mentions a name, the
# pseudonym reveals that triple. "from-triples" accepts this (`fedkge federation check` counts such triples). A list
# that does not depend on your triples ("names.txt", one name per line) avoids it. "threshold" releases only names that
# enough triples mention, and pays for it from your budget.
entities = {entities}
run = "run"              # your ledger, checkpoints and model
kit = "kit"              # the start-up kit that the coordinator sent
key = {key}   # the consortium's key: only the sites have it, never the server; chmod 600
least-owners = {owners}         # rows that fewer sites own are not uploaded
{more}
# How far the server may go; docs/reference/site-policy.md has the rest.
[limits]
rounds = {rounds}

# Your privacy budget: the noise is calibrated to it, every upload is paid from it, and it is never exceeded.
[privacy]
{privacy}
"""


def federation_text(name: str, server: str, port: int, sites: Sequence[str], training: Mapping[str, Any]) -> str:
    """The text of a federation.toml.

    >>> 'port = 8002' in federation_text("study", "server.example", 8002, ["a", "b"], {"rounds": 20})
    True
    """
    return FEDERATION.format(
        name=json.dumps(name),
        server=json.dumps(server),
        port=port,
        sites=json.dumps(list(sites)),
        training=_lines(training),
    )


def site_text(
    name: str,
    federation: str,
    privacy: Mapping[str, Any],
    rounds: int,
    *,
    graph: str = "graph.tsv",
    key: str = "consortium.key",
    owners: int = 2,
    entities: str = "from-triples",
    more: Mapping[str, Any] | None = None,
) -> str:
    """The text of a site.toml.

    >>> 'epsilon = 8.0' in site_text("north", "study", {"epsilon": 8.0}, 20)
    True
    """
    return SITE.format(
        name=name,
        quoted=json.dumps(name),
        federation=json.dumps(federation),
        graph=json.dumps(graph),
        key=json.dumps(key),
        entities=json.dumps(entities),
        owners=owners,
        more=_lines(more or {}) + ("\n" if more else ""),
        rounds=rounds,
        privacy=_lines(privacy),
    )


def _lines(values: Mapping[str, Any]) -> str:
    return "\n".join(f"{key.replace('_', '-')} = {json.dumps(value)}" for key, value in values.items())
