"""A ledger as others may read it: promises, charges and releases, without the digests that recognise data."""

from __future__ import annotations

from fedkge.accounting.ledger_lines import read_lines, sealed
from fedkge.accounting.statements import DATA


def ledger_to_pass_on(content: bytes, name: str = "ledger") -> bytes:
    """The same ledger, sealed again without any digest of data; a torn last line stays counted.

    Whoever reads it cannot tell whether two ledgers are about the same triples, so `fedkge account` counts them by the
    costliest client.

    >>> line, _ = sealed({"kind": "promise", "facts": {"data": "1a2b3c4d:00ff", "rounds": 3}}, "")
    >>> b"1a2b3c4d" in ledger_to_pass_on(line), b"rounds" in ledger_to_pass_on(line)
    (False, True)
    """
    lines, checksum, end = [], "", 0
    for record, _, whole in read_lines(content, name):
        kept = dict(record)
        if "facts" in kept:
            kept["facts"] = {key: value for key, value in kept["facts"].items() if key != DATA}
        line, checksum = sealed(kept, checksum)
        lines.append(line)
        end = whole
    if end < len(content):
        lines.append(sealed({"kind": "torn", "bytes": len(content) - end}, checksum)[0])
    return b"".join(lines)
