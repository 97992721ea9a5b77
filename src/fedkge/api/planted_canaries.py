"""Canaries for a trial of a federation: put into the sites' graphs before anything is laid out."""

from __future__ import annotations

from pathlib import Path

from fedkge.defences import parse
from fedkge.deploy.gathering import PlantedCanaries
from fedkge.experiments.targets.canaries import CANARIES, insert_canaries, keep_canaries
from fedkge.graph.split import Shards
from fedkge.store.durable_files import make_folder


def planted_canaries(out: Path, shards: Shards, count: int, seed: int) -> tuple[Shards, PlantedCanaries | None]:
    """The shards with `count` canaries, by one system coin each, and their file in `out`; as they were for none."""
    if not count:
        return shards, None
    options = {"canaries": count, "canary-coins": "independent", "clients": len(shards), "seed": seed}
    graphs, targets = insert_canaries(shards.graphs, parse(options))
    if targets is None:
        return shards, None
    make_folder(out)
    keep_canaries(out, targets, graphs)
    planted = PlantedCanaries(out / CANARIES, count, len(targets.inserted))
    return Shards(shards.name, tuple(graphs), shards.summary), planted
