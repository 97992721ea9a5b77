"""Messages as bytes: a JSON header and raw arrays, in the safetensors format; never pickle.

Whatever arrives is judged before anything is made of it: size, header, the exact keys of the message, array names,
dtypes and shapes. What does not fit is a `WireError` that says why; who sent it is for the engine to add.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from fedkge.accounting.ledger_lines import is_token
from fedkge.errors import FedkgeError
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
    Reply,
    Request,
    Scores,
    Share,
    Shared,
    Sharing,
    Upload,
    Word,
)
from fedkge.federation.storage import raw_bytes

Message: TypeAlias = Request | Reply | Failure
Arrays: TypeAlias = dict[str, NDArray[Any]]
Numbers: TypeAlias = Literal["float32", "float16"]
"""What rows travel as; they arrive as float32 in any case."""

LARGEST_MESSAGE = 2**31
LARGEST_HEADER = 2**20
LONGEST_REASON = 2_000
KINDS: tuple[Shared, ...] = ("entities", "relations")
DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "U8": np.uint8}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


class WireError(FedkgeError):
    """A message that is not what a fedkge site or server would send.

    >>> WireError("expected a message").exit_code
    6
    """

    exit_code = 6


@dataclass(frozen=True, slots=True)
class _Form:
    """How one kind of message travels: the keys of its header, and how the rest of its fields become arrays."""

    message: type[Any]
    plain: Mapping[str, Callable[[Any], bool]]
    pack: Callable[[Any, Numbers], Arrays] = lambda _message, _numbers: {}
    unpack: Callable[[str, Arrays], dict[str, Any]] = lambda kind, arrays: _nothing(kind, arrays)  # noqa: PLW0108 (defined below)


def encode(message: Message, numbers: Numbers = "float32") -> bytes:
    """The bytes of a message; the same message gives the same bytes.

    >>> decode(encode(Goodbye("budget spent")))
    Goodbye(reason='budget spent')
    """
    kind = type(message).__name__
    form = FORMS[kind]
    values = {key: _plain(getattr(message, key)) for key in form.plain}
    return _pack({"kind": kind, **values}, form.pack(message, numbers))


def decode(content: bytes | bytearray | memoryview, largest: int = LARGEST_MESSAGE) -> Message:
    """The message in these bytes, or a WireError that says what is wrong with them."""
    header, arrays = _unpack(bytes(content), largest)
    kind = header.pop("kind", None)
    form = FORMS.get(kind) if isinstance(kind, str) else None
    if form is None or not isinstance(kind, str):
        raise WireError(f"expected a message of a known kind, got {kind!r:.40}")
    if set(header) != set(form.plain):
        raise WireError(f"{kind}: expected the keys {sorted(form.plain)}, got {sorted(header)!r:.200}")
    for key, fits in form.plain.items():
        if not fits(header[key]):
            raise WireError(f"{kind}: {key} is not what it should be, got {header[key]!r:.60}")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in header.items()}
    message: Message = form.message(**values, **form.unpack(kind, arrays))
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
        return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in value)
    return dict(value) if isinstance(value, Mapping) else value


def _pack(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    try:
        text = json.dumps(header, sort_keys=True, allow_nan=False)
    except ValueError as error:
        raise WireError(f"{header['kind']}: a number is not finite, so it is not sent") from error
    layout: dict[str, Any] = {"__metadata__": {"fedkge": text}}
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        layout[name] = {"dtype": NAMES[array.dtype], "shape": array.shape, "data_offsets": (begin, end)}
    head = json.dumps(layout, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *(raw_bytes(array) for _, array in ordered)])


def _unpack(content: bytes, largest: int) -> tuple[dict[str, Any], Arrays]:
    if len(content) > largest:
        raise WireError(f"expected at most {largest:,} bytes, got {len(content):,}")
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(LARGEST_HEADER, len(content) - 8):
        raise WireError(f"expected a header of at most {LARGEST_HEADER:,} bytes, got {len(content):,} bytes of another")
    try:
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        header = json.loads(metadata["fedkge"], parse_constant=_refuse)
        found = deserialize(content)  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WireError(f"expected a safetensors message, got something else ({error!s:.80})") from error
    if not isinstance(header, dict) or set(metadata) != {"fedkge"}:
        raise WireError("expected a header of keys and values, got something else")
    return header, {name: _array(name, entry) for name, entry in found}


def _refuse(number: str) -> float:
    raise ValueError(f"{number} is no number")


def _array(name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = DTYPES.get(entry["dtype"])
    if dtype is None:
        raise WireError(f"{name:.40}: expected one of {', '.join(DTYPES)}, got {entry['dtype']}")
    return np.frombuffer(entry["data"], dtype).reshape(entry["shape"])


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
        raise WireError(f"{kind}: the names have another form than names have")
    edges = np.concatenate([np.zeros(1, np.int64), ends])
    if edges[-1] != len(text) or (np.diff(edges) < 0).any():
        raise WireError(f"{kind}: the names do not add up to their {len(text):,} bytes")
    content = text.tobytes()
    try:
        return tuple(content[begin:end].decode() for begin, end in pairwise(edges.tolist()))
    except UnicodeDecodeError as error:
        raise WireError(f"{kind}: a name is not UTF-8") from error


def _text(value: Any) -> bool:
    """One line without control characters: what others wrote ends up in logs and on screens."""
    return isinstance(value, str) and len(value) <= LONGEST_REASON and value.isprintable()


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _mark(value: Any) -> bool:
    return value == "" or is_token(value)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _metrics(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and set(value) <= set(KINDS) and all(map(_count, value.values()))


def _scalars(value: Any) -> bool:
    return isinstance(value, dict) and all(
        item is None or _text(item) or _number(item) or isinstance(item, bool) for item in value.values()
    )


FORMS: dict[str, _Form] = {
    form.message.__name__: form
    for form in (
        _Form(
            Invite,
            {
                "version": _text,
                "federation": _text,
                "terms": _scalars,
                "numbers": lambda value: value in ("float32", "float16"),
                "mark": _mark,
                "releases": _count,
            },
        ),
        _Form(Accept, {"version": _text, "fingerprint": _text, "aligned": lambda value: isinstance(value, bool)}),
        _Form(Align, {"sites": _texts, "origin": _text, "raised_by": _texts}, _pack_points, _unpack_points),
        _Form(Aligned, {"origin": _text, "raised_by": _texts, "check": _text}, _pack_points, _unpack_points),
        _Form(Hello, {}),
        _Form(Greeting, {"widths": _counts, "triples": _count}, _pack_greeting, _unpack_greeting),
        _Form(Share, {}, _pack_share, _unpack_share),
        _Form(Sharing, {"rows": _counts}),
        _Form(Fit, {"round": _count}, _pack_rows, _unpack_rows),
        _Form(
            Upload,
            {
                "round": _count,
                "triples": _count,
                "loss": lambda value: value is None or _number(value),
                "mark": _mark,
                "releases": _count,
            },
            _pack_rows,
            _unpack_rows,
        ),
        _Form(Goodbye, {"reason": _text}),
        _Form(Evaluate, {"split": lambda value: value in ("train", "valid", "test")}, _pack_rows, _unpack_rows),
        _Form(
            Scores,
            {
                "triples": _count,
                "metrics": _metrics,
                "controls": lambda value: isinstance(value, dict) and all(map(_metrics, value.values())),
            },
        ),
        _Form(Finish, {"round": _count}, _pack_rows, _unpack_rows),
        _Form(Kept, {"round": _count}),
        _Form(Failure, {"client": _text, "reason": _text, "diverged": lambda value: isinstance(value, bool)}),
    )
}
