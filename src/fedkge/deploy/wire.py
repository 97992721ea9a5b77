"""Messages as bytes, and bytes as messages: one typed, total decoder for everything that arrives.

`decode` gives a message or a WireError that says what is wrong, and no other exception, whatever the bytes are. The
layout is read by `frames`, the header by `headers`; here the arrays of each kind of message are checked and put in
place. The engine adds the sender. The code that uses the rows checks that they are finite and of the right shape and
length (`aggregation.complaint`, at both ends).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.text import printable
from fedkge.deploy.frames import LARGEST_MESSAGE, Arrays, WireError, pack, unpack
from fedkge.deploy.headers import LONGEST_TEXT, fields_of, kind_of, read_header
from fedkge.federation.messages import (
    Accept,
    Align,
    Aligned,
    Evaluate,
    Failure,
    Finish,
    Fit,
    Goodbye,
    Greeting,
    Hello,
    Invite,
    Kept,
    RankingMetrics,
    Reply,
    Request,
    Share,
    Sharing,
    Upload,
    Word,
)
from fedkge.runs.round import Shared

__all__ = [
    "LARGEST_MESSAGE",
    "MOST_NAMES",
    "Message",
    "Numbers",
    "WireError",
    "as_reply",
    "as_request",
    "decode",
    "encode",
]

Message: TypeAlias = Request | Reply | Failure
Numbers: TypeAlias = Literal["float32", "float16"]
"""The number format of rows on the wire; the receiver always gets float32."""

KINDS: tuple[Shared, ...] = ("entities", "relations")
MOST_NAMES = 10_000_000
"""Most names in a greeting."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How the arrays of one kind of message travel; all other fields are in its header."""

    message: type[Any]
    pack: Callable[[Any, Numbers], Arrays] = lambda _message, _numbers: {}
    unpack: Callable[[str, Arrays], dict[str, Any]] = lambda kind, arrays: _nothing(kind, arrays)  # noqa: PLW0108 (defined below)
    arrays: frozenset[str] = frozenset()
    """The fields that travel as arrays."""


def encode(message: Message, numbers: Numbers = "float32") -> bytes:
    """The bytes of a message; the same message gives the same bytes. One that `decode` would refuse is a WireError.

    >>> decode(encode(Goodbye("budget spent")))
    Goodbye(reason='budget spent')
    """
    kind = type(message).__name__
    form = FORMS[kind]
    keys = (field.name for field in fields(message) if field.name not in form.arrays)
    try:
        header = {"kind": kind, **{key: _plain(getattr(message, key)) for key in keys}}
        text = json.dumps(header, sort_keys=True, allow_nan=False)
    except ValueError as error:
        raise WireError(f"{kind}: a number is not finite, so it is not sent") from error
    read_header(text)
    return pack(text, form.pack(message, numbers))


def decode(content: bytes | bytearray | memoryview, largest: int = LARGEST_MESSAGE) -> Message:
    """The message in these bytes, or a WireError that says what is wrong with them."""
    try:
        text, arrays = unpack(content, largest)
        header = read_header(text)
        form = FORMS[kind_of(header)]
        message: Message = form.message(**fields_of(header), **form.unpack(form.message.__name__, arrays))
    except MemoryError as error:
        raise WireError(
            f"expected a message that fits into this machine's memory, got {len(content):,} bytes"
        ) from error
    return message


def as_request(message: Message) -> Request:
    """The message, if it is one that a server sends to a site."""
    if isinstance(message, (Invite, Align, Hello, Share, Fit, Evaluate, Finish)):
        return message
    raise WireError(f"expected a request, got {type(message).__name__}")


def as_reply(message: Message) -> Reply | Failure:
    """The message, if it is one that a site sends to the server."""
    if isinstance(message, (Invite, Align, Hello, Share, Fit, Evaluate, Finish)):
        raise WireError(f"expected a reply, got {type(message).__name__}")
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value, LONGEST_TEXT)
    return dict(value) if isinstance(value, Mapping) else value


def _nothing(kind: str, arrays: Arrays) -> dict[str, Any]:
    if arrays:
        raise WireError(f"{kind}: expected no arrays, got {sorted(arrays)!r:.200}")
    return {}


def _pack_rows(message: Any, numbers: Numbers) -> Arrays:
    with np.errstate(over="ignore"):  # the receiver refuses what is infinite, and says so
        return {name: table.astype(numbers, copy=False) for name, table in message.rows.items()}


def _unpack_rows(kind: str, arrays: Arrays) -> dict[str, Any]:
    for name, array in arrays.items():
        if name not in KINDS or array.ndim != 2 or array.dtype not in (np.float32, np.float16):
            raise WireError(f"{kind}: expected tables of rows, got {name!r:.40} of {array.dtype} {array.shape}")
    return {"rows": {name: arrays[name].astype(np.float32, copy=False) for name in sorted(arrays)}}


def _pack_share(message: Share, _numbers: Numbers) -> Arrays:
    arrays: Arrays = {str(name): places for name, places in message.places.items()}
    for other, word in message.evidence.items():
        arrays |= {f"{other}/places": word.places, f"{other}/tags": word.tags}
    return arrays


def _unpack_share(kind: str, arrays: Arrays) -> dict[str, Any]:
    places = {name: arrays.pop(name) for name in KINDS if name in arrays}
    others = sorted({name.rpartition("/")[0] for name in arrays})
    if set(arrays) != {f"{other}/{part}" for other in others for part in ("places", "tags")} or "" in others:
        raise WireError(f"{kind}: expected places and tags of other sites, got {sorted(arrays)!r:.200}")
    words = {other: Word(arrays[f"{other}/places"], arrays[f"{other}/tags"]) for other in others}
    for array in (*places.values(), *(word.places for word in words.values())):
        if array.dtype != np.int64 or array.ndim != 1:
            raise WireError(f"{kind}: expected places as a list of int64, got {array.dtype} {array.shape}")
    for other, word in words.items():
        if word.tags.dtype != np.uint8 or word.tags.ndim != 2 or len(word.tags) != len(word.places):
            raise WireError(f"{kind}: {other:.70} has {word.tags.shape} tags for {len(word.places)} places")
    return {"places": places, "evidence": words}


def _pack_points(message: Align | Aligned, _numbers: Numbers) -> Arrays:
    return {"points": np.frombuffer(message.points, np.uint8), "tag": np.frombuffer(message.tag, np.uint8)}


def _unpack_points(kind: str, arrays: Arrays) -> dict[str, Any]:
    if set(arrays) != {"points", "tag"} or any(a.dtype != np.uint8 or a.ndim != 1 for a in arrays.values()):
        raise WireError(f"{kind}: expected points and a tag, got {sorted(arrays)!r:.200}")
    return {name: array.tobytes() for name, array in arrays.items()}


def _pack_greeting(message: Greeting, _numbers: Numbers) -> Arrays:
    arrays: Arrays = {f"{kind}/tags": tags for kind, tags in message.tags.items()}
    for kind, words in message.names.items():
        content = [word.encode() for word in words]
        arrays[f"{kind}/ends"] = np.cumsum([len(word) for word in content], dtype=np.int64)
        arrays[f"{kind}/text"] = np.frombuffer(b"".join(content), np.uint8)
    return arrays


def _unpack_greeting(kind: str, arrays: Arrays) -> dict[str, Any]:
    tags = {table: arrays.pop(f"{table}/tags") for table in KINDS if f"{table}/tags" in arrays}
    tables = [table for table in KINDS if f"{table}/ends" in arrays]
    if set(arrays) != {f"{table}/{part}" for table in tables for part in ("ends", "text")}:
        raise WireError(f"{kind}: expected names of {' or '.join(KINDS)}, got {sorted(arrays)!r:.200}")
    names = {table: _words(kind, arrays[f"{table}/ends"], arrays[f"{table}/text"]) for table in tables}
    for table, own in tags.items():
        if own.dtype != np.uint8 or own.ndim != 2 or len(own) != len(names.get(table, ())):
            raise WireError(f"{kind}: expected a tag for each name of {table}, got {own.dtype} {own.shape}")
    return {"names": names, "tags": tags}


def _words(kind: str, ends: NDArray[Any], text: NDArray[Any]) -> tuple[str, ...]:
    if ends.dtype != np.int64 or text.dtype != np.uint8 or ends.ndim != 1 or text.ndim != 1:
        raise WireError(f"{kind}: expected the ends of names as int64 and their text as bytes, got other arrays")
    if len(ends) > MOST_NAMES:
        raise WireError(f"{kind}: expected at most {MOST_NAMES:,} names, got {len(ends):,}")
    edges = np.concatenate([np.zeros(1, np.int64), ends])
    # Bounds come first: the difference of numbers near 2**63 wraps, and then names could overlap.
    if edges.min() < 0 or edges.max() > len(text) or edges[-1] != len(text) or (np.diff(edges) < 0).any():
        raise WireError(f"{kind}: the names do not add up to their {len(text):,} bytes")
    content = text.tobytes()
    try:
        return tuple(content[begin:end].decode() for begin, end in pairwise(edges.tolist()))
    except UnicodeDecodeError as error:
        raise WireError(f"{kind}: a name is not UTF-8") from error


_ROWS = frozenset({"rows"})
_POINTS = frozenset({"points", "tag"})

FORMS: dict[str, _Form] = {
    form.message.__name__: form
    for form in (
        _Form(Invite),
        _Form(Accept),
        _Form(Align, _pack_points, _unpack_points, _POINTS),
        _Form(Aligned, _pack_points, _unpack_points, _POINTS),
        _Form(Hello),
        _Form(Greeting, _pack_greeting, _unpack_greeting, frozenset({"names", "tags"})),
        _Form(Share, _pack_share, _unpack_share, frozenset({"places", "evidence"})),
        _Form(Sharing),
        _Form(Fit, _pack_rows, _unpack_rows, _ROWS),
        _Form(Upload, _pack_rows, _unpack_rows, _ROWS),
        _Form(Goodbye),
        _Form(Evaluate, _pack_rows, _unpack_rows, _ROWS),
        _Form(RankingMetrics),
        _Form(Finish, _pack_rows, _unpack_rows, _ROWS),
        _Form(Kept),
        _Form(Failure),
    )
}
