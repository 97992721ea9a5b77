"""Checks of model.safetensors: tables of the right size, and valid row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedkge.base.errors import RunError
from fedkge.configuration import Configuration
from fedkge.graph import Graph
from fedkge.graph.shards import client_names
from fedkge.runs.run import scorer_of
from fedkge.store.durable_files import Tensors


def check_model(
    tensors: Tensors, shards: Sequence[Graph], configuration: Configuration, names: tuple[int, int], path: Path
) -> None:
    """Refuse a model that does not fit the clients' graphs, the configuration or the run's two lists of names.

    >>> from fedkge.graph import Graph
    >>> check_model({}, [Graph.from_names("a", [("x", "r", "y")])], Configuration(), (2, 1), Path("model.safetensors"))
    Traceback (most recent call last):
    ...
    fedkge.base.errors.RunError: model.safetensors: expected whole numbers own/client-0 of shape (2,), got none; ...
    """
    scorer = scorer_of(configuration)
    widths = scorer.entity_width(configuration.model.dimension), scorer.relation_width(configuration.model.dimension)
    if "entities" in tensors:
        _table(tensors, "entities", (names[0], widths[0]), path)
    for client, shard in zip(client_names(len(shards)), shards, strict=True):
        entities, relations = len(shard.entities), len(shard.relations)
        _places(tensors, f"own/{client}", entities, names[0], path)
        _places(tensors, f"relation_ids/{client}", relations, names[1], path)
        _table(tensors, f"relations/{client}", (relations, widths[1]), path)
        if "entities" not in tensors:
            _table(tensors, f"entities/{client}", (entities, widths[0]), path)


def _table(tensors: Tensors, name: str, shape: tuple[int, int], path: Path) -> None:
    found = tensors.get(name)
    if found is None or found.shape != shape or found.dtype.kind != "f":
        raise _wrong(tensors, name, shape, "numbers", path)


def _places(tensors: Tensors, name: str, count: int, limit: int, path: Path) -> None:
    found = tensors.get(name)
    if found is None or found.shape != (count,) or found.dtype.kind not in "iu":
        raise _wrong(tensors, name, (count,), "whole numbers", path)
    if count and not (int(found.min()) >= 0 and int(found.max()) < limit and len(np.unique(found)) == count):
        raise RunError(f"{path}: expected different row numbers below {limit} in {name}, got others; {REMEDY}")


REMEDY = "restore it from a copy, or start again with --overwrite"


def _wrong(tensors: Tensors, name: str, shape: tuple[int, ...], kind: str, path: Path) -> RunError:
    found = tensors.get(name)
    got = "none" if found is None else f"{found.dtype} of shape {found.shape}"
    return RunError(f"{path}: expected {kind} {name} of shape {shape}, got {got}; {REMEDY}")
