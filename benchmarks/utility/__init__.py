"""How well do models rank? Without a defence (`central`, `federated`), and for a budget (`frontier`, `tune`)."""

from __future__ import annotations

import sys

from benchmarks.utility import frontier, levels

USAGE = "python -m benchmarks utility central|federated|frontier|tune [OPTIONS]; --help after a name tells more"


def main(arguments: list[str]) -> int:
    """Run the comparison that is named first."""
    kind, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if kind in levels.STRATEGIES:
        return levels.main(kind, rest)
    if kind in ("frontier", "tune"):
        return frontier.main(kind, rest)
    print(USAGE, file=sys.stdout if kind in ("-h", "--help") else sys.stderr)
    return 0 if kind in ("-h", "--help") else 2
