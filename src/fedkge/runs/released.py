"""What reports read of a run's defence: it in words, and what clients have released once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedkge.accounting.promises import Promise
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence, promised_defence
from fedkge.defences.defence import Description
from fedkge.defences.release import Holding
from fedkge.runs.directory import RunDirectory
from fedkge.runs.state_file import saved_release


def described(configuration: Configuration) -> Description:
    """The defence of these options in words.

    >>> described(Configuration()).not_private
    'this run has no defence'
    """
    return chosen_defence(configuration).describe(configuration)


def is_defended(configuration: Configuration) -> bool:
    """Whether the clients of such a run promise anything.

    >>> is_defended(Configuration())
    False
    """
    return chosen_defence(configuration).keeps_ledger


def holdings(run: Path, promises: Mapping[str, Promise]) -> dict[str, Holding]:
    """How much of its graph the release of each client holds, where a checkpoint is here and that can be told.

    Guarantee: post-processing. It reads what was released and the public number of triples in the promise, never a
    client's triples, so it is the same for neighbouring graphs with the same releases.
    """
    directory, found = RunDirectory(run), dict[str, Holding]()
    for client, promise in promises.items():
        path = directory.checkpoints / f"{client}.safetensors"
        released = saved_release(path, promised_defence(promise)) if path.exists() else None
        holding = released.holding(promise.plan.triples) if released else None
        if holding:
            found[client] = holding
    return found
