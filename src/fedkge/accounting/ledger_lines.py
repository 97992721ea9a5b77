"""The lines of a ledger: JSON with a checksum that chains each line to the one before."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from fedkge.base.errors import PrivacyError
from fedkge.base.plain_files import parse_json

CHECKSUM, NONCE, RUN = "checksum", "nonce", "run"


def fresh_token() -> str:
    """128 random bits of the operating system: they tell nothing, and nobody can guess them.

    >>> is_token(fresh_token()), fresh_token() == fresh_token()
    (True, False)
    """
    return secrets.token_hex(16)


def is_token(value: object) -> bool:
    """Whether this is what `fresh_token` makes.

    >>> is_token("../../etc/passwd")
    False
    """
    return isinstance(value, str) and len(value) == 32 and set(value) <= set("0123456789abcdef")


def sealed(record: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """The line of `record`, and its checksum, which the next line needs.

    >>> line, checksum = sealed({"kind": "torn"}, previous="")
    >>> line.startswith(b'{"kind": "torn", "checksum": "'), len(checksum)
    (True, 64)
    """
    content = json.dumps(record)
    checksum = hashlib.sha256(f"{previous}\n{content}".encode()).hexdigest()
    return json.dumps({**record, CHECKSUM: checksum}).encode() + b"\n", checksum


def read_lines(content: bytes, name: str) -> Iterator[tuple[dict[str, Any], str, int]]:
    """The record, the checksum and the end of each whole line, up to a torn last one.

    A crash can tear only the last line. A wrong line with other lines after it was damaged later: that is an error.
    """
    previous, begin, number = "", 0, 0
    while begin < len(content):
        end = content.find(b"\n", begin) + 1
        number += 1
        record = _opened(content[begin:end], previous) if end else None
        if record is None and 0 < end < len(content):
            raise damage(name, number, "its checksum is wrong")
        if record is None:
            return
        previous = record.pop(CHECKSUM)
        yield record, previous, end
        begin = end


def run_of(content: bytes, name: str) -> str:
    """The run that its lines belong to, which one of them tells; blank where none does, as in early versions.

    >>> run_of(b"", "ledger"), run_of(sealed({RUN: "ab" * 16}, "")[0], "ledger") == "ab" * 16
    ('', True)
    """
    told = (record[RUN] for record, _, _ in read_lines(content, name) if is_token(record.get(RUN)))
    return str(next(told, ""))


def damage(name: str, number: int, what: str) -> PrivacyError:
    """The error for a line that no crash can have made."""
    return PrivacyError(
        f"{name}:{number}: the ledger was changed or damaged in this line: {what}. The spent budget is no longer "
        "known. Restore the file from an up-to-date copy; without one, count the whole budget as spent"
    )


def _opened(line: bytes, previous: str) -> dict[str, Any] | None:
    """The record with its checksum, or None if they do not fit."""
    try:
        record = parse_json(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    again, _ = sealed({key: value for key, value in record.items() if key != CHECKSUM}, previous)
    return record if again == line else None
