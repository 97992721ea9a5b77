"""How much of each client's graph its noisy copy holds: from the checkpoints' released values and public numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fedkge.defences.noisy_copy import NoisyCopy
from fedkge.defences.noisy_copy.holding import holding_of
from fedkge.report.document import HeldCopy
from fedkge.runs.run import RunDirectory
from fedkge.runs.state_file import saved_release

if TYPE_CHECKING:
    from fedkge.accounting.promises import Promise


def gather_copies(run: Path, promises: Mapping[str, Promise]) -> tuple[HeldCopy, ...]:
    """One entry for each client whose copy is drawn and whose checkpoint is here.

    Guarantee: post-processing. It reads what the copy released and the public number of triples in the promise, never
    a client's triples, so it is the same for neighbouring graphs with the same releases.
    """
    return tuple(_held(run, promises))


def _held(run: Path, promises: Mapping[str, Promise]) -> Iterator[HeldCopy]:
    for client, promise in promises.items():
        path = RunDirectory(run).checkpoints / f"{client}.safetensors"
        copy = saved_release(path) if path.exists() else None
        if isinstance(copy, NoisyCopy):
            found = holding_of(copy, promise.plan.triples)
            yield HeldCopy(client, found.believed, found.true, found.precision, found.share, found.words)
