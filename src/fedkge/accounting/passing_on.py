"""A ledger as others may read it: promises, charges and releases, without what recognises data, run or line."""

from __future__ import annotations

from typing import Any

from fedkge.accounting.ledger_lines import NONCE, RUN, read_lines, sealed

OWN = ("data", NONCE, RUN)
"""What a ledger's holder recognises data, lines and the run by; nobody else needs it."""


def ledger_to_pass_on(content: bytes, name: str = "ledger") -> bytes:
    """The same ledger, sealed again without any digest of data; a torn last line stays counted.

    Nor has it the random numbers of its lines and its run: it is a copy, which no witness on any machine speaks of.

    A reader of it cannot tell whether two ledgers are about the same triples, so `fedkge account` counts them by the
    costliest client.

    >>> line, _ = sealed({"kind": "promise", "facts": {"data": "1a2b3c4d:00ff", "rounds": 3}}, "")
    >>> b"1a2b3c4d" in ledger_to_pass_on(line), b"rounds" in ledger_to_pass_on(line)
    (False, True)
    """
    lines, checksum, end = [], "", 0
    for record, _, whole in read_lines(content, name):
        line, checksum = sealed(_without_own(record), checksum)
        lines.append(line)
        end = whole
    if end < len(content):
        lines.append(sealed({"kind": "torn", "bytes": len(content) - end}, checksum)[0])
    return b"".join(lines)


def _without_own(value: Any) -> Any:
    """Plain values without these keys, however deep: a line about a release holds a promise, and that holds facts."""
    if isinstance(value, dict):
        return {key: _without_own(each) for key, each in value.items() if key not in OWN}
    return [_without_own(each) for each in value] if isinstance(value, list) else value
