"""Tables and lines for people, on stdout; JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedkge.base.text import LINES, printable

WIDE = 160
"""Width where there is no terminal: nothing is folded in a file."""


class PlainConsole(Console):
    """A console that shows text as it is: names of entities, files and sites can neither style nor drive it.

    What does not print is written out, and square brackets are square brackets.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, but no text as markup and no control character as itself."""
        shown = (printable(item, keep=LINES) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **{**options, "markup": False})


def stdout() -> Console:
    """Where results go."""
    return _console(PlainConsole(highlight=False))


def stderr() -> Console:
    """Where everything else goes."""
    return _console(PlainConsole(stderr=True, highlight=False))


def _console(console: Console) -> Console:
    if not console.is_terminal:
        console.width = WIDE
    return console


def print_json(value: Any) -> None:
    """One line of JSON on stdout, at once; in ASCII, so that no terminal or pipe can garble it."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """A line on stdout that is not folded."""
    stdout().print(text, soft_wrap=True)


def say(text: str) -> None:
    """A line on stderr that is not folded."""
    stderr().print(text, soft_wrap=True)


def grid(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = (0,)
) -> RenderableType:
    """A table with a title; the columns `words` hold words, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), show_header=any(header))
    for number, name in enumerate(header):
        in_words = number in words
        table.add_column(name, justify="left" if in_words else "right", no_wrap=not in_words)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return Group(Text(printable(title), style="bold"), table, "") if title else Group(table, "")
