"""The layers of fedkge: which room holds what, and which rooms it may import. Everything else is an error.

`tests/test_layers.py` compares this table with every import in `src/fedkge`, and with the page
`docs/reference/layers.md`, which `python -m tests.layers` writes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fedkge"
PAGE = ROOT / "docs" / "reference" / "layers.md"

GROUND = ("graph", "mechanisms", "models", "evaluation", "store", "accounting", "configuration")
TRAINING = (*GROUND, "defences", "runs", "federation")


@dataclass(frozen=True, slots=True)
class Room:
    """A package directly under `fedkge`. `base` may be imported by all, so it is not named."""

    name: str
    holds: str
    imports: tuple[str, ...] = ()


ROOMS = (
    Room("base", "errors, registries, numbers, text, plain files: what has no subject"),
    Room("graph", "graphs, readers, data sets, splits, synthetic graphs"),
    Room("mechanisms", "sampling, clipping, selection, noise, counts, responses; their sensitivities and events"),
    Room("models", "scorers, losses, negatives, optimisers, kernels", ("graph",)),
    Room("evaluation", "ranking and controls", ("graph", "models")),
    Room("store", "durable files, locks, keys, fingerprints, randomness"),
    Room("accounting", "accountants, calibration, promises, the ledger", ("mechanisms", "store")),
    Room("configuration", "the sections of a run's options"),
    Room("defences", "the `Defence` protocol and one package for each defence", GROUND),
    Room("runs", "runs, run directories, views, the transcript", (*GROUND, "defences")),
    Room("federation", "client, server, aggregation, strategies, the embedded engine", (*GROUND, "defences", "runs")),
    Room("attacks", "a view in, scores out", ("graph", "models", "runs.view")),
    Room("audit", "numbers in, numbers out"),
    Room(
        "experiments",
        "whatever runs a federation in order to attack or audit it: canaries, shadows, forks, audits of runs",
        (*TRAINING, "attacks", "audit"),
    ),
    Room(
        "report",
        "a typed document; JSON, figures and a page made of it; words for promises and verdicts",
        ("evaluation", "store", "accounting", "configuration", "runs", "audit"),
    ),
    Room(
        "deploy",
        "the NVFlare engine, the wire, alignment, site policy, provisioning",
        ("graph", "store", "accounting", "configuration", "defences", "runs", "federation"),
    ),
    Room("trackers", "observers that tell other tools how a run goes", ("configuration", "federation")),
    Room("api", "the public face", (*TRAINING, "attacks", "audit", "experiments", "report", "deploy", "trackers")),
    Room(
        "cli",
        "one file for each command",
        (*TRAINING, "attacks", "audit", "experiments", "report", "deploy", "trackers", "api"),
    ),
)


@dataclass(frozen=True, slots=True)
class Import:
    """One module that imports another."""

    importer: str
    line: int
    imported: str

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def imports() -> Iterator[Import]:
    """Every import of fedkge by fedkge, those inside functions too."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name.startswith("fedkge."):
                    yield Import(path.relative_to(SOURCE).as_posix(), node.lineno, name)


def allowed(rooms: tuple[Room, ...], one: Import) -> bool:
    """Whether the contract has a place for this import."""
    own = one.importer.partition("/")[0]
    if own.endswith(".py"):  # fedkge/__init__.py is the public face
        return one.imported.split(".")[1] in {"api", "graph", "base"} | {room.name for room in rooms}
    target = one.imported.removeprefix("fedkge.")
    if target.split(".")[0] in (own, "base") or target == "__version__":
        return True
    room = next((room for room in rooms if room.name == own), None)
    return room is not None and any(f"{target}.".startswith(f"{name}.") for name in room.imports)


def page() -> str:
    """The contract as a page of the documentation."""
    rows = []
    for room in ROOMS:
        named = ", ".join(f"`{name}`" for name in room.imports)
        rows.append(f"| `{room.name}` | {room.holds} | {named or 'nothing'} |")
    return "\n".join(
        [
            "# Layers",
            "",
            "`src/fedkge` is a house of rooms. A room imports only rooms above it in this table, and of those only the",
            "ones that its row names. Every room may import `base`. A test compares this table with every import.",
            "There is no exception.",
            "",
            "| room | holds | imports |",
            "|---|---|---|",
            *rows,
            "",
            "`python -m tests.layers` writes this page from the contract in `tests/layers.py`.",
            "[Decision 12](../decisions/0012-layers.md) says why.",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
