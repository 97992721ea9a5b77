"""Mutations of valid files that know a file's structure: bytes and lines of text, values of JSON and of TOML tables."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from fedkge.base.errors import FedkgeError

NASTY_BYTES = (
    b"\x00",
    b"\xff",
    b"\xc2\xb2",  # the digit two, raised: isdigit() but no int()
    b"\xd9\xa1",  # an Arabic one: int() takes it
    b"\x1d",
    b"\x1d1",
    b"1_0",
    b"-1",
    b"9" * 30,
    b"1e999",
    b"nan",
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\t",
    b" ",
    b";",
    b'"',
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"{",
    b"[" * 3000,
    b"a.b = 1\n",
    b"<<( ",
)
NASTY_VALUES = (
    None,
    True,
    False,
    0,
    -1,
    10**30,
    0.5,
    -0.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "x",
    "²",
    "\ud800",
    "0",
    [],
    [[]],
    [1, 2],
    {},
    {"x": 1},
    [None],
)


@st.composite
def mutated_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with one to three places changed, cut, repeated or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        span = draw(st.integers(0, min(40, len(content) - at)))
        match draw(st.sampled_from(["insert", "replace", "delete", "repeat", "cut", "flip"])):
            case "insert":
                content = content[:at] + draw(st.sampled_from(NASTY_BYTES)) + content[at:]
            case "replace":
                content = content[:at] + draw(st.sampled_from(NASTY_BYTES)) + content[at + span :]
            case "delete":
                content = content[:at] + content[at + span :]
            case "repeat":
                content = content[: at + span] + content[at:]
            case "cut":
                content = content[:at]
            case _ if at < len(content):
                content = content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
            case _:
                pass
    return content


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every part of a JSON value, the whole first."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        found += places(part, (*path, key))
    return found


@st.composite
def mutated_value(draw: st.DrawFn, value: Any) -> Any:
    """The value with one or two parts replaced, taken away, doubled or put where another was."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 2))):
        # Lists of a hundred numbers would be chosen nearly always: one place per shape of path is enough.
        by_shape = {tuple(str(part) if isinstance(part, str) else "*" for part in way): way for way in places(value)}
        way = draw(st.sampled_from(list(by_shape.values())))
        if not way:
            value = copy.deepcopy(draw(st.sampled_from(NASTY_VALUES)))
            continue
        holder = value
        for key in way[:-1]:
            holder = holder[key]
        match draw(st.sampled_from(["replace", "replace", "delete", "repeat", "add"])):
            case "delete":
                del holder[way[-1]]
            case "repeat" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[way[-1]]))
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(["x", "", "both.realistic.mrr", "round"]))] = copy.deepcopy(
                    draw(st.sampled_from(NASTY_VALUES))
                )
            case _:
                holder[way[-1]] = copy.deepcopy(draw(st.sampled_from(NASTY_VALUES)))
    return value


def mutated_json(content: bytes, lines: bool = False) -> st.SearchStrategy[bytes]:
    """A JSON file, or one with a value per line, changed as a value or as bytes."""
    if lines:
        value: Any = [json.loads(line) for line in content.splitlines()]
        written = mutated_value(value).map(
            lambda made: "".join(json.dumps(one) + "\n" for one in (made if isinstance(made, list) else [made]))
        )
    else:
        written = mutated_value(json.loads(content)).map(json.dumps)
    return st.one_of(written.map(str.encode), mutated_bytes(content))


def harmless(reader: Callable[[], object]) -> None:
    """A value, or an error that a person can read; anything else goes through."""
    found: FedkgeError | None = None
    try:
        reader()
    except FedkgeError as error:
        found = error
    assert found is None or (str(found) and found.exit_code > 2)
