"""Where the pages of the reproduction find what they rest on: parts of themselves, proofs, benchmarks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DOCUMENTATION = "docs"
PARTS = {
    "table-attacks": "Table 1",
    "table-utility": "Table 2",
    "figure-rounds": "figure over rounds",
    "figure-defence": "figure after defence",
    "figure-tradeoff": "utility and defence",
    "method": "method",
}


@dataclass(frozen=True, slots=True)
class Links:
    """From a folder to files of the repository; a folder that is elsewhere has no links to it."""

    folder: str = ""
    """From the root of the repository; empty: outside of it."""

    def to(self, evidence: str) -> str:
        """The way to a file; empty where there is none. The documentation does not link to what is outside of it.

        >>> Links("results").to("docs/proofs/ptr.md#the-step")
        '../docs/proofs/ptr.md#the-step'
        >>> Links("docs/reproduction").to("docs/proofs/ptr.md"), Links("docs/reproduction").to("benchmarks/README.md")
        ('../proofs/ptr.md', '')
        >>> Links().to("docs/threat-model.md")
        ''
        """
        inside = Path(self.folder).parts[:1] == (DOCUMENTATION,)
        if not self.folder or (inside and not evidence.startswith(f"{DOCUMENTATION}/")):
            return ""
        return os.path.relpath(evidence, self.folder)


def links_from(folder: Path) -> Links:
    """The links of a folder, by where it is."""
    root = Path(__file__).resolve().parents[1]
    if not (root / DOCUMENTATION / "proofs").is_dir() or root not in folder.resolve().parents:
        return Links()
    return Links(folder.resolve().relative_to(root).as_posix())


def named(evidence: str) -> str:
    """What a link to evidence is called.

    >>> named("table-attacks"), named("docs/proofs/ptr.md#the-step"), named("benchmarks/README.md")
    ('Table 1', 'proofs/ptr.md', 'benchmarks/README.md')
    """
    return PARTS.get(evidence, evidence.partition("#")[0].removeprefix(f"{DOCUMENTATION}/"))


def anchor(title: str) -> str:
    """Where a heading of a Markdown page is found.

    >>> anchor("Table 1: F1 of the attacks")
    'table-1-f1-of-the-attacks'
    """
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return "-".join(kept.split())
