"""A `repr` of one line for values that hold names, triples or tables: sizes are shown, contents are not.

Whatever is printed may end up in a log. The name of an entity may be private, so no `repr` in fedkge shows one; a table
of a million rows must not fill a screen either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

T = TypeVar("T")


def short_repr(*shown: str) -> Callable[[type[T]], type[T]]:
    """Give a dataclass a `repr` of one line. Of its strings it shows only those of the fields `shown`.

    Numbers are shown. Arrays, collections and other values are shown by type and size.

    >>> from dataclasses import dataclass
    >>> @short_repr("client")
    ... @dataclass
    ... class Finding:
    ...     client: str
    ...     entity: str
    ...     score: float
    ...     others: list[str]
    >>> Finding("client-0", "Ada Lovelace", 0.5, ["Charles Babbage"])
    Finding(client='client-0', score=0.5, others=<1>)
    """

    def decorate(kind: type[T]) -> type[T]:
        def __repr__(self: Any) -> str:  # noqa: N807
            values = {one.name: getattr(self, one.name) for one in fields(self) if one.repr}
            visible = {name: value for name, value in values.items() if name in shown or not isinstance(value, str)}
            parts = (f"{name}={_size_or_value(value)}" for name, value in visible.items())
            return f"{type(self).__name__}({', '.join(parts)})"

        kind.__repr__ = __repr__  # type: ignore[method-assign]
        return kind

    return decorate


def _size_or_value(value: Any) -> str:
    """A value in a few characters."""
    if value is None or isinstance(value, str | bool | int | float | Enum):
        return repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:79]}…"
    if isinstance(value, PurePath):
        return repr(str(value))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, Collection):
        return f"<{len(value):,}>"
    return f"<{type(value).__name__}>"
