"""Any bytes are a message or a WireError: valid messages of every kind, mutated where they have structure.

What bounds time and memory is checked on what comes out: a message holds no more rows, names and bytes than were sent.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedkge.deploy.headers import LARGEST_METRIC
from fedkge.deploy.wire import FORMS, decode, encode
from fedkge.federation.messages import (
    LARGEST_LOSS,
    MOST_ROUNDS,
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
from tests.deploy.every_message import MESSAGES, checked, joined, parts, same

PRINTS = st.characters(categories=("L", "N", "P", "S"))
TEXT = st.text(PRINTS, max_size=20)
SITE = st.from_regex(r"[A-Za-z0-9-]{1,20}", fullmatch=True)
SITES = st.lists(SITE, max_size=4).map(tuple)
ROUND, TRIPLES = st.integers(0, MOST_ROUNDS), st.integers(0, MOST_TRIPLES)
BYTES = st.binary(max_size=70)
KIND = st.sampled_from(["entities", "relations"])
COUNTS = st.dictionaries(KIND, st.integers(0, 2**20))
METRICS = st.dictionaries(TEXT, st.floats(-LARGEST_METRIC, LARGEST_METRIC), max_size=4)
TERMS = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e300, 1e300), TEXT)
TABLE = st.tuples(st.integers(0, 4), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(width=32, allow_nan=False))
)
ROWS = st.dictionaries(KIND, TABLE)


@st.composite
def words(draw: st.DrawFn) -> Word:
    places = draw(st.lists(st.integers(0, 2**40), max_size=4))
    return Word(np.array(places, np.int64), np.full((len(places), 16), 7, np.uint8))


@st.composite
def greetings(draw: st.DrawFn) -> Greeting:
    names = draw(st.dictionaries(KIND, st.lists(st.text(max_size=6), max_size=5).map(tuple)))
    tagged = {kind: np.full((len(own), 16), 3, np.uint8) for kind, own in names.items() if draw(st.booleans())}
    return Greeting(names, draw(COUNTS), draw(TRIPLES), tagged)


PLACES = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(lambda found: np.array(found, np.int64))
KINDS: dict[type[Any], st.SearchStrategy[Any]] = {
    Invite: st.builds(Invite, TEXT, TEXT, st.dictionaries(TEXT, TERMS, max_size=4), st.sampled_from(["float32"])),
    Accept: st.builds(Accept, TEXT, TEXT, st.booleans()),
    Align: st.builds(Align, SITES, TEXT, SITES, BYTES, BYTES),
    Aligned: st.builds(Aligned, TEXT, SITES, BYTES, BYTES, TEXT),
    Hello: st.just(Hello()),
    Greeting: greetings(),
    Share: st.builds(
        Share,
        st.dictionaries(KIND, PLACES),
        st.dictionaries(SITE.filter(lambda name: name not in ("entities", "relations")), words(), max_size=3),
    ),
    Sharing: st.builds(Sharing, COUNTS),
    Fit: st.builds(Fit, ROUND, ROWS),
    Upload: st.builds(Upload, ROUND, ROWS, TRIPLES, st.none() | st.floats(-LARGEST_LOSS, LARGEST_LOSS)),
    Goodbye: st.builds(Goodbye, TEXT),
    Evaluate: st.builds(Evaluate, ROWS, st.sampled_from(["train", "valid", "test"])),
    RankingMetrics: st.builds(RankingMetrics, TRIPLES, METRICS, st.dictionaries(TEXT, METRICS, max_size=2)),
    Finish: st.builds(Finish, ROUND, ROWS),
    Kept: st.builds(Kept, ROUND),
    Failure: st.builds(Failure, TEXT, TEXT, st.booleans()),
}


def test_every_kind_of_message_is_generated() -> None:
    assert {kind.__name__ for kind in KINDS} == set(FORMS)


@settings(max_examples=400, deadline=None)
@given(st.one_of(*KINDS.values()))
def test_every_message_comes_back_as_it_was(message: Any) -> None:
    content = encode(message)
    found = decode(content)
    assert same(found, message)
    assert encode(found) == content


NASTY = st.one_of(
    st.sampled_from(
        [10**30, -(10**30), 2**53, 2**62, 2**63, 2**64, -1, 1e308, -1e308, 1e-308, True, None, "", "\x1b[2J", "\u202e"]
    ),
    st.sampled_from([[], {}, [[]], [2**62, 0], [0, 2**31], [1] * 40, {"\x1b": 1}, "x" * 3000, "NaN", "F64", "Upload"]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
)


def mutated(draw: st.DrawFn, value: Any) -> Any:
    """The value with one thing in it replaced, removed, added or renamed."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        others = {other: item for other, item in value.items() if other != key}
        how = draw(st.integers(0, 5))
        if how == 0:
            return others
        if how == 1:
            return {**others, draw(st.text(max_size=8) | st.just("\x1b")): value[key]}
        if how == 2:
            return {**value, draw(st.text(max_size=8)): draw(NASTY)}
        return {**value, key: mutated(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutated(draw, value[place]), *value[place + draw(st.integers(0, 1)) :]]
    return draw(NASTY)


@st.composite
def structured(draw: st.DrawFn) -> bytes:
    """A valid message of any kind whose header, layout or data was changed a few times."""
    header, layout, data = parts(encode(draw(st.sampled_from(MESSAGES) | st.one_of(*KINDS.values()))))
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.integers(0, 2))
        if where == 0:
            header = mutated(draw, header)
        elif where == 1:
            changed = mutated(draw, layout)
            layout = changed if isinstance(changed, dict) else layout
        else:
            data = draw(st.binary(max_size=40)) if draw(st.booleans()) else data[: draw(st.integers(0, len(data)))]
    return joined(header, layout, data)


@settings(max_examples=1500, deadline=None)
@given(structured())
def test_a_mutated_header_or_layout_is_a_message_or_a_refusal(content: bytes) -> None:
    checked(content)


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_mutated_bytes_are_a_message_or_a_refusal(data: st.DataObject) -> None:
    content = bytearray(encode(data.draw(st.sampled_from(MESSAGES))))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, max(0, len(content) - 1)))
        how = data.draw(st.integers(0, 3))
        if how == 0:
            content[place : place + 1] = data.draw(st.binary(max_size=3))
        elif how == 1:
            del content[place : place + data.draw(st.integers(1, 16))]
        elif how == 2:
            content[place:place] = content[place : place + data.draw(st.integers(1, 16))]
        else:
            content = content[:place]
    checked(bytes(content))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(content: bytes) -> None:
    checked(content)
    checked(len(content).to_bytes(8, "little") + content)


def test_deep_and_long_headers_are_refused() -> None:
    for text in ("[" * 400_000, '{"a":' * 100_000, '{"kind":"Fit","round":' + "9" * 900_000 + "}"):
        assert checked(joined(text, {})) is None
    deep = b'{"__metadata__":{"fedkge":"{}"},"a":' + b"[" * 400_000 + b" " * 8
    deep += b" " * (-len(deep) % 8)
    assert checked(len(deep).to_bytes(8, "little") + deep) is None
