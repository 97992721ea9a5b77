"""What a fuzz target is, and the list of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Judge = Callable[[bytes], object]
"""Takes any bytes; an exception is a finding."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reader.

    make     given a folder to write in, what reads the bytes
    seeds    given the same folder, inputs to begin with
    modules  whose code is watched for new paths
    message  whether mutations may work on the JSON within a message of the wire
    """

    make: Callable[[Path], Judge]
    seeds: Callable[[Path], Sequence[bytes]]
    modules: tuple[str, ...]
    message: bool = False


def all_targets() -> dict[str, Target]:
    """The targets by name."""
    from fuzz import graphs, messages, settings, states  # noqa: PLC0415 (they import half of fedkge)

    return {**messages.TARGETS, **graphs.TARGETS, **settings.TARGETS, **states.TARGETS}
