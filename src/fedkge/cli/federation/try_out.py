"""`fedkge federation try`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.api.planted_canaries import planted_canaries
from fedkge.cli.arguments import Json
from fedkge.cli.errors import stops_at_once
from fedkge.cli.tables import print_json, print_line, say
from fedkge.deploy.trial import Trial
from fedkge.graph.datasets import load
from fedkge.graph.split import split

EXAMPLE = "Example: fedkge federation try --clients 3"


def try_out(
    clients: Annotated[int, typer.Option(help="Number of sites.")] = 3,
    data: Annotated[str, typer.Option(help="A file, a folder, or a data set by name.")] = "demo",
    out: Annotated[Path, typer.Option(help="New folder for everything.")] = Path("runs/federation"),
    rounds: Annotated[int, typer.Option(help="Number of communication rounds.")] = 5,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each site. 0 means no defence.")] = 8.0,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 7,
    canaries: Annotated[
        int, typer.Option(help="Number of canaries for an audit. client-0 trains on about half of them.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Run a whole federation on this machine, one process per party.

    The parties use TLS and certificates, as between machines. At the end, fedkge joins their runs into one run
    directory, which fedkge attack, audit and report read like any other.
    """
    trial = Trial(out, clients, rounds, epsilon or None, seed)
    shards, planted = planted_canaries(out, split(load(data), clients, "entity", seed), canaries, seed)
    with stops_at_once(f"the files so far are in {out}", trial.stop):
        result = trial.run(shards, planted, say)
    if as_json:
        print_json(result)
        return
    for name, path in result["runs"].items():
        print_line(f"{name}: {path}")
    say(f"Next: fedkge evaluate {result['runs']['everything']}, or fedkge report {result['runs']['everything']}")
