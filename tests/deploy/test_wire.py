"""Messages as bytes: what goes in comes out, and what is not a message is refused with a reason."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from fedkge.deploy.frames import pack
from fedkge.deploy.wire import FORMS, WireError, as_reply, as_request, decode, encode
from fedkge.federation.messages import (
    Fit,
    Goodbye,
    Greeting,
    Upload,
)
from tests.deploy.every_message import MESSAGES, PLACES, ROWS, TAGS, joined, same


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_as_it_was(message: Any) -> None:
    content = encode(message)
    assert same(decode(content), message)
    assert encode(decode(content)) == content


def test_every_kind_of_message_has_a_form_and_a_test() -> None:
    assert {type(message).__name__ for message in MESSAGES} == set(FORMS)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text(max_size=8), max_size=6),
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
def test_names_and_rows_of_any_size(names: list[str], height: int, width: int, seed: int) -> None:
    names = [name for name in names if name.isprintable()]
    assert decode(encode(Greeting({"entities": names}, {"entities": width}, 1))).names["entities"] == tuple(names)  # type: ignore[union-attr]
    rows = np.random.default_rng(seed).normal(size=(height, width)).astype(np.float32)
    assert np.array_equal(decode(encode(Upload(1, {"entities": rows}, 1, None))).rows["entities"], rows)  # type: ignore[union-attr,arg-type]


def test_float16_halves_the_bytes_and_arrives_as_float32() -> None:
    rows = np.random.default_rng(1).normal(size=(100, 64)).astype(np.float32)
    whole, half = (encode(Fit(1, {"entities": rows}), numbers) for numbers in ("float32", "float16"))
    assert len(half) < 0.55 * len(whole)
    found = decode(half)
    assert isinstance(found, Fit)
    assert found.rows["entities"].dtype == np.float32
    np.testing.assert_allclose(found.rows["entities"], rows, rtol=1e-3, atol=1e-6)


def test_what_float16_cannot_hold_arrives_as_infinite_and_is_refused_there() -> None:
    found = decode(encode(Fit(1, {"entities": np.full((1, 1), 1e6, np.float32)}), "float16"))
    assert isinstance(found, Fit)
    assert np.isinf(found.rows["entities"]).all()


def made(header: Any, **arrays: Any) -> bytes:
    text = header if isinstance(header, str) else json.dumps(header)
    if not arrays:
        return pack(text, {})  # safetensors 0.4 writes no JSON for a file without arrays
    return bytes(save({name.replace("_", "/"): array for name, array in arrays.items()}, {"fedkge": text}))


FLOATS = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "expected a header"),
        (b"\x80\x04pickle me", "expected a header"),
        (b"\xff" * 64, "expected a header"),
        ((8).to_bytes(8, "little") + b"nopenope", "expected a safetensors message"),
        (made({"kind": "Fit", "round": 1}, entities=FLOATS)[:-3], "a message that ends before"),
        (made({"kind": "Fit", "round": 1}, entities=FLOATS) + b"more", "expected [0-9]+ bytes, got"),
        (made("[1]"), "Expected `object`, got `array`"),
        (made({"kind": "Execute"}), "Invalid value 'Execute'"),
        (made({"kind": ["Fit"]}), "Expected `str` - at `[$].kind`"),
        (made({"kind": "Fit"}, entities=FLOATS), "missing required field `round`"),
        (made({"kind": "Fit", "round": 1, "code": "x"}, entities=FLOATS), "unknown field `code`"),
        (made({"kind": "Fit", "round": -1}, entities=FLOATS), "Expected `int` >= 0 - at `[$].round`"),
        (made({"kind": "Fit", "round": True}, entities=FLOATS), "got `bool` - at `[$].round`"),
        (made({"kind": "Fit", "round": 1}, secrets=FLOATS), "expected tables of rows"),
        (made({"kind": "Fit", "round": 1}, entities=np.zeros((2, 3), np.int64)), "expected tables of rows"),
        (made({"kind": "Fit", "round": 1}, entities=np.zeros(3, np.float32)), "expected tables of rows"),
        (made({"kind": "Fit", "round": 1}, entities=np.zeros((1, 1), np.float64)), "Invalid enum value 'F64'"),
        (made('{"kind": "Upload", "round": 1, "triples": 1, "loss": NaN}', entities=FLOATS), "malformed"),
        (made({"kind": "Hello"}, entities=FLOATS), "expected no arrays"),
        (made({"kind": "Goodbye", "reason": "x" * 5000}), "length <= 2000 - at `[$].reason`"),
        (
            made(
                {"kind": "Greeting", "widths": {"entities": 1}, "triples": 1},
                entities_ends=np.array([1, 99], np.int64),
                entities_text=np.zeros(3, np.uint8),
            ),
            "do not add up",
        ),
        (
            made(
                {"kind": "Greeting", "widths": {"entities": 1}, "triples": 1},
                entities_ends=np.array([1], np.int64),
                entities_text=np.array([0xFF], np.uint8),
            ),
            "not UTF-8",
        ),
        (made({"kind": "Share"}, entities=PLACES, north_places=PLACES), "places and tags"),
        (made({"kind": "Share"}, entities=PLACES, north_places=PLACES, north_tags=TAGS[:1]), "tags for 2 places"),
    ],
)
def test_what_is_no_message_is_refused_with_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode(content)


def laid_out(layout: Any, data: bytes = b"", header: Any = None) -> bytes:
    """A message with a layout made by hand."""
    return joined({"kind": "Fit", "round": 1} if header is None else header, layout, data)


def entry(shape: Any, begin: Any = 0, end: Any = 0, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_a_layout_made_by_hand_is_read() -> None:
    found = decode(laid_out({"entities": entry([1, 2], 0, 8)}, np.ones(2, np.float32).tobytes()))
    assert isinstance(found, Fit)
    assert found.rows["entities"].tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(
    ("layout", "size", "reason"),
    [
        ({"entities": entry([2**62, 0])}, 0, "<= 2147483648"),
        ({"entities": entry([2**31, 0])}, 0, "rows of 1 to"),
        ({"entities": entry([0, 2**31])}, 0, "rows of 1 to"),
        ({"entities": entry([5, 0])}, 0, "rows of 1 to"),
        ({"entities": entry([-1, 1])}, 0, ">= 0"),
        ({"entities": entry([1] * 9, 0, 4)}, 4, "length <= 2"),
        ({"entities": entry([], 0, 4)}, 4, "length >= 1"),
        ({"entities": entry([1, 1], 0, 8)}, 8, "from byte 0"),
        ({"entities": entry([2, 1], 4, 12)}, 12, "from byte 0"),
        ({"entities": entry([1, 1], 0, 4), "relations": entry([1, 1], 0, 4)}, 4, "from byte 4"),
        ({"entities": entry([1, 1], 1, 5), "relations": entry([1], 0, 1, "U8")}, 5, "from byte 1"),
        ({"entities": entry([2**31, 2**20], 0, 2**31)}, 8, "from byte 0"),
        ({"entities": entry([1, 1], 0, 4) | {"code": 1}}, 4, "unknown field"),
        ({"entities": [1]}, 4, "got `array`"),
        ({"a\x1b[2Jb": entry([1, 1], 0, 4)}, 4, "the name of an array"),
        ({"a" * 500: entry([1, 1], 0, 4)}, 4, "the name of an array"),
        ({f"a{i}": entry([0, 1]) for i in range(5000)}, 0, "at most 4096 arrays"),
    ],
)
def test_a_layout_that_lies_is_refused(layout: Any, size: int, reason: str) -> None:
    """Among them the 197 bytes that said that they held 2**62 rows of no numbers."""
    with pytest.raises(WireError, match=reason):
        decode(laid_out(layout, bytes(size)))


END = {"mark": "", "releases": 0}


def upload(**fields: Any) -> dict[str, Any]:
    return {"kind": "Upload", "round": 1, "triples": 1, "loss": 0.5} | END | fields


def scores(**fields: Any) -> dict[str, Any]:
    return {"kind": "RankingMetrics", "triples": 1, "metrics": {"mrr": 0.5}, "controls": {}} | fields


def invite(**terms: Any) -> dict[str, Any]:
    return {"kind": "Invite", "version": "1", "federation": "f", "numbers": "float32", "terms": terms} | END


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (upload(loss=10**30), r"loss"),
        (upload(loss=1e308), r"loss"),
        (upload(loss=-1e7), r"loss"),
        (upload(loss=True), r"loss"),
        (upload(triples=2**53 - 1), r"triples"),
        (upload(triples=10**4000), r"triples"),
        (upload(round=10**30), r"round"),
        (upload(mark="AB" * 16), r"mark"),
        (upload(mark="ab" * 16 + "\n"), r"mark"),
        (upload(mark="ab" * 15), r"mark"),
        (upload(releases=-1), r"releases"),
        (upload(releases=10**30), r"releases"),
        (scores(metrics={"mrr": 10**30}), r"metrics"),
        (scores(metrics={"mrr": 1e308}), r"metrics"),
        (scores(metrics={"mrr\x1b[2J": 0.5}), r"text that prints, got 'mrr\\x1b"),
        (scores(metrics={str(i): 0.5 for i in range(500)}), r"length <= 200"),
        (scores(controls={"\n": {}}), r"text that prints"),
        (invite(**{"a\u202eb": 1}), r"text that prints"),
        (invite(model="\x07"), r"text that prints"),
        (invite(rounds=10**30), r"terms"),
        (invite(rounds=[1]), r"terms"),
        ({"kind": "Failure", "client": "a", "reason": "\x1b", "diverged": False}, r"text that prints"),
        ({"kind": "Align", "sites": ["\x1b"], "origin": "", "raised_by": []}, r"text that prints"),
        ({"kind": "Sharing", "rows": {"secrets": 1}}, r"secrets"),
    ],
)
def test_a_header_with_values_out_of_bounds_is_refused_and_the_reason_prints(header: Any, reason: str) -> None:
    with pytest.raises(WireError, match=reason) as refused:
        decode(laid_out({}, header=header))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 500


@pytest.mark.parametrize("ends", [[2**63 - 1, -2, 3], [-1, 3], [4, 3], [1, 2]])
def test_names_cannot_overlap(ends: list[int]) -> None:
    """A difference of numbers near 2**63 wraps: each name could be the whole text, and the memory quadratic."""
    header = {"kind": "Greeting", "widths": {"entities": 1}, "triples": 1}
    content = made(header, entities_ends=np.array(ends, np.int64), entities_text=np.frombuffer(b"abc", np.uint8))
    with pytest.raises(WireError, match="do not add up"):
        decode(content)


def test_what_would_be_refused_is_not_sent() -> None:
    with pytest.raises(WireError, match="not finite"):
        encode(Upload(1, ROWS, 1, float("nan")))
    with pytest.raises(WireError, match="loss"):
        encode(Upload(1, ROWS, 1, 1e7))


def test_a_long_reason_with_escapes_is_cut_and_arrives() -> None:
    found = decode(encode(Goodbye("\x1b" * 5000)))
    assert isinstance(found, Goodbye)
    assert found.reason.startswith("\\x1b")
    assert len(found.reason) == 2000


def test_a_message_that_is_too_large_is_not_looked_at() -> None:
    with pytest.raises(WireError, match="at most 100 bytes"):
        decode(encode(Fit(1, ROWS)) + b"x" * 100, largest=100)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_message_is_a_wire_error_or_another_message_and_nothing_else(data: st.DataObject) -> None:
    content = bytearray(encode(MESSAGES[data.draw(st.integers(0, len(MESSAGES) - 1))]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        decode(bytes(content))


def test_requests_and_replies_are_told_apart() -> None:
    for message in MESSAGES:
        request = type(message).__name__ in ("Invite", "Align", "Hello", "Share", "Fit", "Evaluate", "Finish")
        with pytest.raises(WireError, match="expected a re"):
            (as_reply if request else as_request)(message)
        assert (as_request if request else as_reply)(message) is message
