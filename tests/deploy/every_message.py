"""One message of every kind, and what takes its bytes apart and puts them together again, changed."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fedkge.deploy.frames import LONGEST_ERROR
from fedkge.deploy.headers import LONGEST_NAME, LONGEST_TEXT
from fedkge.deploy.wire import Message, WireError, decode, encode
from fedkge.federation.messages import (
    LARGEST_LOSS,
    MOST_TRIPLES,
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
    Share,
    Sharing,
    Upload,
    Word,
)

ROWS = {"entities": np.arange(6, dtype=np.float32).reshape(2, 3)}
PLACES = np.array([0, 2], np.int64)
TAGS = np.arange(32, dtype=np.uint8).reshape(2, 16)
MESSAGES: list[Any] = [
    Invite("0.1.0", "study", {"rounds": 3, "learning-rate": 0.5, "model": "transe", "row-clip": None}, "float16"),
    Invite("0.1.0", "study", {}, "float32", "0123456789abcdef" * 2, 12),
    Accept("0.1.0", "ab", False),
    Accept("0.1.0", "ab", True, "fedcba9876543210" * 2, 3),
    Align(("a", "b"), "a", ("b",), b"points", b"tag"),
    Aligned("a", ("b",), b"points", b"tag", "00"),
    Hello(),
    Greeting({"entities": ("a", "", "ßü")}, {"entities": 3}, 7, {"entities": np.zeros((3, 16), np.uint8)}),
    Share({"entities": PLACES}, {"north": Word(PLACES, TAGS)}),
    Sharing({"entities": 2}),
    Fit(3, ROWS),
    Upload(3, ROWS, 100, 0.25),
    Upload(3, ROWS, 100, None),
    Upload(3, ROWS, 100, None, "0123456789abcdef" * 2, 12),
    Goodbye("its privacy budget is spent"),
    Evaluate(ROWS, "valid"),
    RankingMetrics(3, {"mrr": 0.5}, {"popularity": {"mrr": 0.25}}),
    Finish(9, ROWS),
    Kept(9),
    Failure("north", "it could not", True),
]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(value, other[key]) for key, value in one.items())
    if hasattr(one, "__slots__"):
        return type(one) is type(other) and all(same(getattr(one, n), getattr(other, n)) for n in one.__slots__)
    return bool(one == other)


def parts(content: bytes) -> tuple[Any, Any, bytes]:
    """The header, the layout of the arrays and the data of a message that was encoded."""
    size = int.from_bytes(content[:8], "little")
    layout = json.loads(content[8 : 8 + size])
    return json.loads(layout.pop("__metadata__")["fedkge"]), layout, content[8 + size :]


def joined(header: Any, layout: Any, data: bytes = b"") -> bytes:
    """The bytes of a message with this header, layout and data, whatever they are."""
    whole = {"__metadata__": {"fedkge": header if isinstance(header, str) else json.dumps(header)}, **layout}
    head = json.dumps(whole).encode("utf-8", "surrogatepass")
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + data


def checked(content: bytes) -> Message | None:
    """Decode any bytes: a message that keeps to the limits and can be sent again, or a refusal (None) that prints."""
    try:
        message = decode(content)
    except WireError as error:
        reason = str(error)
    else:
        _check(message, content)
        return message
    assert reason.isprintable()
    assert len(reason) <= LONGEST_ERROR
    return None


def _check(message: Message, content: bytes) -> None:
    found = [item for key in type(message).__slots__ for item in _items(getattr(message, key), key == "names")]
    assert sum(found) <= 2 * len(content), "float16 becomes float32; nothing else grows"
    assert len(found) <= len(content)
    rows = getattr(message, "rows", {})
    assert all(not isinstance(table, np.ndarray) or len(table) <= len(content) for table in rows.values())
    if isinstance(message, Upload):
        assert message.loss is None or abs(message.loss) <= LARGEST_LOSS
        assert 0 <= message.triples <= MOST_TRIPLES
    if not any(isinstance(table, np.ndarray) and np.isnan(table).any() for table in rows.values()):
        assert same(decode(encode(message)), message)


def _items(value: Any, names: bool = False) -> Iterator[int]:
    """The bytes that each part of a value holds; texts but names must print, and numbers be finite."""
    if isinstance(value, np.ndarray):
        assert value.ndim in (1, 2)
        yield value.nbytes
    elif isinstance(value, str):
        assert names or (value.isprintable() and len(value) <= LONGEST_TEXT)
        yield len(value)
    elif isinstance(value, bytes):
        yield len(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            assert len(key) <= LONGEST_NAME
            yield from _items(key)
            yield from _items(item, names)
    elif isinstance(value, tuple):
        for item in value:
            yield from _items(item, names)
    elif isinstance(value, Word):
        yield from _items((value.places, value.tags))
    else:
        assert value is None or (isinstance(value, (bool, int, float)) and math.isfinite(value))
        yield 0
