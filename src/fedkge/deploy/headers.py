"""The header of each kind of message: which keys it has, and what values each may hold.

msgspec decodes a header's JSON into one of these classes or refuses it: no key is missing, none is unknown, each value
is of its type and within its bounds. Every text prints, so that it may go into a log. Every number is finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from fedkge.deploy.frames import WIDEST_ROW, WireError
from fedkge.federation.messages import LARGEST_LOSS, MOST_ROUNDS, MOST_TRIPLES
from fedkge.runs.round import Shared

LONGEST_TEXT = 2_000
LONGEST_NAME = 200
MOST_SITES = 1_000
LARGEST_METRIC = 1e9
"""A mean rank is at most the number of entities."""

Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Name: TypeAlias = Annotated[str, Meta(max_length=LONGEST_NAME)]
Sites: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=MOST_SITES)]
Round: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_ROUNDS)]
Triples: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_TRIPLES)]
Width: TypeAlias = Annotated[int, Meta(ge=0, le=WIDEST_ROW)]
Rows: TypeAlias = Annotated[int, Meta(ge=0, le=2**31)]
Loss: TypeAlias = Annotated[float, Meta(ge=-LARGEST_LOSS, le=LARGEST_LOSS)]
Metric: TypeAlias = Annotated[float, Meta(ge=-LARGEST_METRIC, le=LARGEST_METRIC)]
Metrics: TypeAlias = Annotated[dict[Name, Metric], Meta(max_length=200)]
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Mark: TypeAlias = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{32})?\Z")]
"""The random number of a line of a ledger, or nothing."""
Releases: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_ROUNDS)]
Term: TypeAlias = bool | Whole | Annotated[float, Meta(ge=-1e300, le=1e300)] | Text | None


def _kind(name: str) -> str:
    return name.removesuffix("Header")


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag=_kind):
    """The part of a message that is no array."""

    def __post_init__(self) -> None:
        for key in self.__struct_fields__:
            for text in _texts(getattr(self, key)):
                if not text.isprintable():
                    raise ValueError(f"{key}: expected text that prints, got {text!r:.60}")


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value: they end up in logs and on screens."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)


class InviteHeader(Header, frozen=True):
    """The terms of a federation."""

    version: Name
    federation: Name
    terms: Annotated[dict[Name, Term], Meta(max_length=200)]
    numbers: Literal["float32", "float16"]
    mark: Mark
    releases: Releases


class AcceptHeader(Header, frozen=True):
    """A site takes part."""

    version: Name
    fingerprint: Name
    aligned: bool
    mark: Mark
    releases: Releases


class AlignHeader(Header, frozen=True):
    """A list on its way round the ring, to a site."""

    sites: Sites
    origin: Name
    raised_by: Sites


class AlignedHeader(Header, frozen=True):
    """A list on its way round the ring, from a site."""

    origin: Name
    raised_by: Sites
    check: Name


class HelloHeader(Header, frozen=True):
    """Who are you?"""


class GreetingHeader(Header, frozen=True):
    """What a site owns."""

    widths: dict[Shared, Width]
    triples: Triples


class ShareHeader(Header, frozen=True):
    """Which rows to share."""


class SharingHeader(Header, frozen=True):
    """How many rows a site shares."""

    rows: dict[Shared, Rows]


class FitHeader(Header, frozen=True):
    """Train a round."""

    round: Round


class UploadHeader(Header, frozen=True):
    """What came of a round."""

    round: Round
    triples: Triples
    loss: Loss | None
    mark: Mark
    releases: Releases


class GoodbyeHeader(Header, frozen=True):
    """A site takes part no longer."""

    reason: Text


class EvaluateHeader(Header, frozen=True):
    """Rank your held-out triples."""

    split: Literal["train", "valid", "test"]


class RankingMetricsHeader(Header, frozen=True):
    """Metrics of a site's held-out triples."""

    triples: Triples
    metrics: Metrics
    controls: Annotated[dict[Name, Metrics], Meta(max_length=50)]


class FinishHeader(Header, frozen=True):
    """The end, with the final rows."""

    round: Round


class KeptHeader(Header, frozen=True):
    """The final rows are on disk."""

    round: Round


class FailureHeader(Header, frozen=True):
    """A site could not answer."""

    client: Name
    reason: Text
    diverged: bool


AnyHeader: TypeAlias = (
    InviteHeader
    | AcceptHeader
    | AlignHeader
    | AlignedHeader
    | HelloHeader
    | GreetingHeader
    | ShareHeader
    | SharingHeader
    | FitHeader
    | UploadHeader
    | GoodbyeHeader
    | EvaluateHeader
    | RankingMetricsHeader
    | FinishHeader
    | KeptHeader
    | FailureHeader
)
_DECODER: msgspec.json.Decoder[AnyHeader] = msgspec.json.Decoder(AnyHeader)


def read_header(text: str) -> AnyHeader:
    """The header in this JSON, or a WireError.

    >>> read_header('{"kind": "Fit", "round": 3}')
    FitHeader(round=3)
    >>> read_header('{"kind": "Fit", "round": -1}')
    Traceback (most recent call last):
    ...
    fedkge.deploy.frames.WireError: expected the header of a message: Expected `int` >= 0 - at `$.round`
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"expected the header of a message: {error}") from error


def fields_of(header: AnyHeader) -> Mapping[str, Any]:
    """The keys and values of a header, without its kind.

    >>> fields_of(FitHeader(round=3))
    {'round': 3}
    """
    return msgspec.structs.asdict(header)


def kind_of(header: AnyHeader) -> str:
    """The kind of message that this is the header of.

    >>> kind_of(FitHeader(round=3))
    'Fit'
    """
    return _kind(type(header).__name__)
