"""Results as tables: a data frame on request, and a few lines for a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from fedkge.base.errors import UnavailableError
from fedkge.base.text import printable

T = TypeVar("T")
Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = Mapping[str, Cell]
Library: TypeAlias = Literal["pandas", "polars", "pyarrow"]

LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")
"""The libraries of data frames, in the order in which they are looked for."""
SHOWN_ROWS = 6
"""So many rows stand in a `repr`."""
SHOWN_ROWS_HTML = 20
LONGEST = 60
"""So many characters of a cell are shown."""


class Tabular:
    """A result that is a table: `to_frame()` gives all of it, `repr` and a notebook show its first rows.

    A class says what its table holds by `rows()` and `title()`. `shown` has the columns of `repr` and HTML with their
    headings; without it all columns are there. A column with names of entities is never among them: it is in the data
    frame alone.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Budgets(Tabular):
    ...     left: dict[str, float]
    ...
    ...     def title(self) -> str:
    ...         return "Privacy budget"
    ...
    ...     def rows(self) -> list[Row]:
    ...         return [{"client": client, "left": left} for client, left in self.left.items()]
    >>> Budgets({"client-0": 1.5, "client-1": 0.25})
    Privacy budget
    client    left
    client-0   1.5
    client-1  0.25
    >>> Budgets({"client-0": 1.5}).to_frame("pyarrow").to_pydict()
    {'client': ['client-0'], 'left': [1.5]}
    """

    __slots__ = ()
    shown: ClassVar[Mapping[str, str]] = {}

    def title(self) -> str:
        """What the table is about, in one line."""
        raise NotImplementedError

    def rows(self) -> Sequence[Row]:
        """The table, row by row; every row has the same columns."""
        raise NotImplementedError

    def to_frame(self, library: Library | None = None) -> Any:
        """The table as a data frame of `library`; without it, of the first that is there: pandas, polars, pyarrow."""
        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else self.shown)}
        chosen = library if library is not None else next(filter(find_spec, LIBRARIES), LIBRARIES[-1])
        try:
            module: Any = import_module(chosen)
        except ImportError as error:
            raise UnavailableError(
                f"to_frame: expected {chosen} to be installed, got none: `pip install {chosen}`"
            ) from error
        return module.table(columns) if chosen == "pyarrow" else module.DataFrame(columns)

    def __repr__(self) -> str:
        rows = self.rows()
        header, body = self._cells(rows[:SHOWN_ROWS])
        widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
        in_words = [not any(_is_number(row[name]) for row in rows) for name in self.shown or (rows[0] if rows else ())]
        lines = [
            "  ".join(
                cell.ljust(width) if words else cell.rjust(width)
                for cell, width, words in zip(line, widths, in_words, strict=True)
            ).rstrip()
            for line in (header, *body)
        ]
        return "\n".join([self.title(), *(lines if header else ()), *_more(len(rows) - SHOWN_ROWS)])

    def _repr_html_(self) -> str:
        rows = self.rows()
        header, body = self._cells(rows[:SHOWN_ROWS_HTML])
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in body)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>" if header else ""
        rest = "".join(f"<p>{line}</p>" for line in _more(len(rows) - SHOWN_ROWS_HTML))
        return f"<p>{escape(self.title())}</p>{table}{rest}"

    def _cells(self, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
        columns = self.shown or {name: name for name in (rows[0] if rows else ())}
        return list(columns.values()), [[_cell(row[name]) for name in columns] for row in rows]


class ByClient(Tabular, Mapping[str, T]):
    """A table that is also a mapping from client to one value each, which a class keeps as `clients`."""

    __slots__ = ()
    clients: Mapping[str, T]

    def __getitem__(self, client: str) -> T:
        return self.clients[client]

    def __iter__(self) -> Iterator[str]:
        return iter(self.clients)

    def __len__(self) -> int:
        return len(self.clients)


def _more(rows: int) -> list[str]:
    return [f"... {rows:,} more rows: to_frame()"] if rows > 0 else []


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else printable(cell, LONGEST)
