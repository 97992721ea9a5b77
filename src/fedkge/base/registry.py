"""Registries: one dictionary per room from name to entry, and one function that looks up a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from fedkge.base.errors import ConfigurationError

Value = TypeVar("Value")


def near(name: str, known: Iterable[str], most: int = 5) -> list[str]:
    """The known names nearest to `name`, nearest first; upper and lower case count as equal.

    >>> near("TransH", ["transe", "rotate", "distmult"])
    ['transe']
    """
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    matches = get_close_matches(name.casefold(), by_folded, n=most, cutoff=0.5)
    return [by_folded[match] for match in matches]


def look_up(registry: Mapping[str, Value], name: str, kind: str) -> Value:
    """The entry called `name`, or an error that lists similar names.

    >>> look_up({"transe": 1, "rotate": 2}, "rotate", "model")
    2
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"{kind}: expected a name, got {name!r:.60}")
    if name in registry:
        return registry[name]
    close = near(name, registry)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(registry)}"
    raise ConfigurationError(f"unknown {kind} {name!r}: {hint}")
