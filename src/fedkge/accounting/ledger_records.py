"""The records that lines of a ledger hold. Decoding is total: a record of one of these kinds, or a ValueError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from fedkge.accounting.extras import Extra
from fedkge.accounting.promises import Promise
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import Charge

ChargeRecords: TypeAlias = tuple[dict[str, Any], ...]
Round: TypeAlias = Annotated[int, Meta(ge=0)]
PROMISE, KIND = "promise", "kind"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field=KIND):
    """What a line says, without its checksum, its random number and the run's identity."""

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made


class OnceRecord(Record, frozen=True, tag="once"):
    """Something is released once before the promise, and this came out."""

    what: str
    charges: ChargeRecords
    value: Any
    promise: dict[str, Any]


class ChargeRecord(Record, frozen=True, tag="charge"):
    """A round is about to spend this."""

    client: str
    round: Round
    charges: ChargeRecords


class ReleaseRecord(Record, frozen=True, tag="release"):
    """What a round drew may leave, in the state with this fingerprint."""

    client: str
    round: Round
    state: str = ""


class ExtraRecord(Record, frozen=True, tag="extra"):
    """A release beyond the rounds is about to be drawn."""

    client: str
    name: str
    epsilon: Annotated[float, Meta(gt=0)]
    charges: ChargeRecords

    def extra(self) -> Extra:
        """What it promises and costs."""
        return Extra(self.name, self.epsilon, charges_of(self.charges))


class ExtraValueRecord(Record, frozen=True, tag="extra-value"):
    """A charged release beyond the rounds drew this."""

    client: str
    name: str
    value: dict[str, int]


class TornRecord(Record, frozen=True, tag="torn"):
    """A crash left half a line of so many bytes here."""

    bytes: int


AnyRecord: TypeAlias = OnceRecord | ChargeRecord | ReleaseRecord | ExtraRecord | ExtraValueRecord | TornRecord


def decoded(record: Mapping[str, Any]) -> AnyRecord | Promise:
    """What a record says; a ValueError where it is none of these.

    >>> decoded({"kind": "torn", "bytes": 7})
    TornRecord(bytes=7)
    >>> decoded({"kind": "torn", "bytes": "7"})
    Traceback (most recent call last):
    ValueError: Expected `int`, got `str` - at `$.bytes`
    """
    if record.get(KIND) == PROMISE:
        return Promise.of_record({key: value for key, value in record.items() if key != KIND})
    try:
        made: AnyRecord = msgspec.convert(record, AnyRecord)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    return made


def promise_record(promise: Promise) -> dict[str, Any]:
    """The record of a promise: its values stand in the line itself."""
    return {KIND: PROMISE, **promise.record()}


def charge_records(charges: Iterable[Charge]) -> ChargeRecords:
    """Charges as plain values."""
    return tuple(charge.record() for charge in charges)


def charges_of(records: Sequence[Mapping[str, Any]]) -> tuple[Charge, ...]:
    """The charges that `charge_records` was made from; a ValueError where it is anything else."""
    try:
        return tuple(Charge.of_record(record) for record in records)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
