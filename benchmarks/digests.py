"""Same bits: SHA-256 digests of small models, trained under research seeds, beside a stored table.

`python -m benchmarks digests --check` trains every cell again and exits with 1 if a digest, a spent epsilon or a rank
differs. It uses the public names of `fedkge` alone, so that it outlives changes inside the package. The bits depend on
the versions of numpy and numba and may depend on the processor: a table is good for the machine type that made it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import fedkge as fk
from benchmarks.report import RESULTS
from fedkge.store.state_folder import VARIABLE

TABLE = RESULTS / "digests" / "before.json"
MODELS = ("transe", "rotate", "distmult", "complex")
PUBLIC_GRAPH = "<public graph>"
"""In a cell's options: the path of a graph with the same names as the private one, and other triples."""

SMALL = {"rounds": 2, "dimension": 8, "negatives": 8, "batch_size": 64, "local_epochs": 1, "evaluate_every": 0}
STEPS = {**SMALL, "local_epochs": 2, "learning_rate": 1.0, "public_triples": 600}
"""For noisy steps, which the noise would otherwise leave where they began."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One federation to train: the options of `fedkge.train`, the graph, and how it is dealt to three clients."""

    options: Mapping[str, Any]
    by: str = "entity"
    base: Mapping[str, Any] = field(default_factory=lambda: SMALL)
    triples: int = 2000
    on_disk: bool = False
    """Whether the run has a directory, which attacks within the federation need."""


def _cells() -> dict[str, Cell]:
    """Every cell by its name, in the order of the table."""
    return {**_undefended(), **_copies(), **_noisy_steps(), **_published()}


def _undefended() -> dict[str, Cell]:
    strategies = {
        f"none {strategy} {model}": Cell({"strategy": strategy, "model": model})
        for strategy in ("fede", "fedr", "isolated", "pooled")
        for model in MODELS
    }
    optimisers = {
        f"none optimiser={name}": Cell({"optimiser": name, "learning_rate": 0.05, "optimiser_state": "kept"})
        for name in ("lazy-adam", "adam", "adagrad", "sgd")
    }
    return {
        **strategies,
        **optimisers,
        "none split=relation": Cell({}, by="relation"),
        "none split=triple": Cell({}, by="triple"),
        "none split=relation fedr": Cell({"strategy": "fedr"}, by="relation"),
        "none aggregation=weighted": Cell({"aggregation": "weighted"}),
        "none aggregation=weighted fedr": Cell({"aggregation": "weighted", "strategy": "fedr"}, by="triple"),
        "none fraction=0.5": Cell({"fraction": 0.5, "rounds": 3}),
        "none norm=2": Cell({"norm": 2}),
        "none independent filtered negatives": Cell({"negative_group": 1, "filter_negatives": True}),
        "none corrupt=head temperature=0": Cell({"corrupt": "head", "temperature": 0.0}),
        "none regularisation and decay": Cell({"regularisation": 0.01, "learning_rate_decay": 0.5}),
        "none patience": Cell({"rounds": 4, "evaluate_every": 1, "patience": 1}),
        "none canaries=40": Cell({"canaries": 40}),
        "none canaries=40 likely, seeded coins": Cell(
            {"canaries": 40, "canary_source": "likely", "canary_coins": "seeded"}
        ),
        "none canaries=40 real": Cell({"canaries": 40, "canary_source": "real"}),
        "none inline-attack=cia": Cell({"canaries": 20, "inline_attack": "cia", "rounds": 6}, on_disk=True),
    }


def _copies() -> dict[str, Cell]:
    budgets = {f"recommended epsilon={epsilon:g}": Cell({"epsilon": epsilon}) for epsilon in (1.0, 4.9, 5.0, 8.0, 16.0)}
    sparse = {
        f"recommended sparse epsilon={epsilon:g}": Cell({"epsilon": epsilon}, by="triple", triples=400)
        for epsilon in (8.0, 9.0)
    }
    models = {f"recommended {model}": Cell({"epsilon": 8.0, "model": model}) for model in MODELS}
    strategies = {
        f"recommended {strategy}": Cell({"epsilon": 8.0, "strategy": strategy}) for strategy in ("fedr", "isolated")
    }
    return {
        **budgets,
        **sparse,
        **models,
        **strategies,
        "recommended public-triples=600": Cell({"epsilon": 8.0, "public_triples": 600}),
        "recommended count-share=0.5": Cell({"epsilon": 8.0, "count_share": 0.5}),
        "recommended accountant=rdp": Cell({"epsilon": 8.0, "accountant": "rdp"}),
        "recommended aggregation=weighted": Cell({"epsilon": 8.0, "aggregation": "weighted"}),
        "recommended fraction=0.5": Cell({"epsilon": 8.0, "fraction": 0.5, "rounds": 3}),
        "recommended names=listed": Cell({"epsilon": 8.0, "names": "listed"}),
        "recommended names=threshold": Cell({"epsilon": 16.0, "names": "threshold"}),
        "recommended canaries=40": Cell({"epsilon": 8.0, "canaries": 40}),
    }


def _noisy_steps() -> dict[str, Cell]:
    def steps(**options: Any) -> Cell:
        return Cell({"defence": "noisy-steps", "epsilon": 8.0, **options}, base=STEPS)

    models = {f"noisy-steps {model}": steps(model=model) for model in MODELS}
    selections = {
        f"noisy-steps selection={name}": steps(selection=name, private_negatives="public", count_share=0.0)
        for name in ("dense", "adafest", "fest", "ptr")
    }
    schedules = {f"noisy-steps schedule={name}": steps(noise_schedule=name) for name in ("constant", "decay")}
    optimisers = {
        f"noisy-steps optimiser={name}": steps(optimiser=name, noise_step=0.0, learning_rate=0.05)
        for name in ("lazy-adam", "adam", "adagrad", "sgd")
    }
    return {
        **models,
        **selections,
        **schedules,
        **optimisers,
        "noisy-steps schedule=validation": steps(
            noise_schedule="validation", public_validation=PUBLIC_GRAPH, rounds=4, least_gain=1.0
        ),
        "noisy-steps strategy=fedr": steps(strategy="fedr"),
        "noisy-steps strategy=isolated": steps(strategy="isolated"),
        "noisy-steps strategy=pooled": steps(strategy="pooled"),
        "noisy-steps without counts": steps(count_share=0.0),
        "noisy-steps count-types=2": steps(count_types=2),
        "noisy-steps noise=3 without a budget": steps(epsilon=None, noise=3.0),
        "noisy-steps noisy size": steps(public_triples=0),
        "noisy-steps accountant=rdp": steps(accountant="rdp"),
        "noisy-steps aggregation=weighted": steps(aggregation="weighted", public_triples=0),
        "noisy-steps fraction=0.5": steps(fraction=0.5, rounds=3),
        "noisy-steps row-clip=0.1": steps(row_clip=0.1),
        "noisy-steps normalise": steps(clip=5.0, normalise=True),
        "noisy-steps uniform public negatives": steps(private_negatives="public"),
        "noisy-steps negatives of a public graph": steps(private_negatives="public", public_graph=PUBLIC_GRAPH),
        "noisy-steps names=threshold": steps(epsilon=16.0, names="threshold"),
        "noisy-steps canaries=40": steps(canaries=40),
        "noisy-steps inline-attack=cia": Cell(
            {"defence": "noisy-steps", "epsilon": 8.0, "canaries": 20, "inline_attack": "cia", "rounds": 6},
            base=STEPS,
            on_disk=True,
        ),
    }


def _published() -> dict[str, Cell]:
    presets = {
        f"{defence} {model}": Cell({"defence": defence, "epsilon": 8.0, "model": model}, base=STEPS)
        for defence in ("dpsgd", "dp-flames", "dp-flames-adaptive")
        for model in ("transe", "distmult")
    }
    by_noise = {
        f"{defence} noise=1": Cell({"defence": defence, "noise": 1.0}, base=STEPS)
        for defence in ("dpsgd", "dp-flames", "dp-flames-adaptive")
    }
    formulas = {
        f"{defence} selection={selection}": Cell(
            {"defence": defence, "noise": 1.0, "selection": selection, "delta": 1e-5}, base=STEPS
        )
        for defence, selection in (("dpsgd", "dense-published"), ("dp-flames", "ptr-published"))
    }
    passing = {"selection": "ptr", "noise": 0.5, "test_failure": 0.3, "local_steps": 8}
    return {
        **presets,
        **by_noise,
        **formulas,
        "dp-flames selection=ptr, some tests pass": Cell({"defence": "dp-flames", **passing}, base=STEPS),
    }


CELLS = _cells()


def main(arguments: list[str]) -> int:
    """Write the table, or compare with it: 1 if a cell differs, 2 if there is nothing to compare with or to write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks digests", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the table instead of writing it")
    parser.add_argument("--cell", action="append", metavar="TEXT", help="only cells whose name contains this text")
    parser.add_argument(
        "--table", type=Path, default=TABLE, help="the JSON file (default: results/digests/before.json)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a table that exists")
    parser.add_argument("--page", type=Path, metavar="AFTER", help="write README.md: --table beside the table AFTER")
    options = parser.parse_args(arguments)
    if options.page:
        return _write_page(options.table, options.page)
    chosen = [name for name in CELLS if not options.cell or any(text in name for text in options.cell)]
    problem = _problem(options, chosen)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    began = time.process_time()
    with _own_state():
        code = _compare(options.table, chosen) if options.check else _write(options.table, chosen)
    print(f"{len(chosen)} cells, {time.process_time() - began:.0f} CPU-seconds")
    return code


@contextmanager
def _own_state() -> Iterator[None]:
    """A state folder for this command: the user's own keys and witnesses are not touched."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before


def _problem(options: argparse.Namespace, chosen: Sequence[str]) -> str:
    if not chosen:
        return f"expected a part of a cell's name, got {options.cell}; cells: {', '.join(CELLS)}"
    if options.check and not options.table.is_file():
        return f"{options.table}: no such table; make one by leaving --check out"
    if not options.check and options.table.exists() and not options.overwrite:
        return f"{options.table}: the table exists; compare with --check, or replace it with --overwrite"
    return ""


def _write(path: Path, names: Sequence[str]) -> int:
    made = {}
    for name in names:
        made[name] = digest(CELLS[name])
        print(f"{made[name]['sha256'][:16]}  {name}", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"environment": _environment(), "cells": made}, indent=1) + "\n", encoding="utf-8")
    return 0


def _write_page(before: Path, after: Path) -> int:
    """Both tables side by side as Markdown, beside the first; 1 if a cell differs."""
    first, second = (json.loads(path.read_text(encoding="utf-8"))["cells"] for path in (before, after))
    rows, different = [], 0
    for name in sorted({**first, **second}, key=[*CELLS, *first, *second].index):
        one, two = first.get(name), second.get(name)
        different += one != two
        shown = [each["sha256"][:16] if each else "none" for each in (one, two)]
        spent = ", ".join(dict.fromkeys(two["epsilon"].values())) if two else ""
        rows.append(f"| {name} | `{shown[0]}` | `{shown[1]}` | {'yes' if one == two else '**no**'} | {spent} |")
    lines = [
        "# Same bits: digests of models before and after the rebuilding",
        "",
        "Each cell is a small federation, trained under research seeds. A digest is the SHA-256 over all tensors",
        "of the final model, shortened to 16 digits. `same` also compares the spent epsilon and the test MRR, digit",
        "by digit.",
        "",
        f"`python -m benchmarks digests --page benchmarks/results/digests/{after.name}` writes this page.",
        f"{different} of {len(rows)} cells differ.",
        "",
        f"| cell | {before.stem} | {after.stem} | same | epsilon spent |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    (before.parent / "README.md").write_text("\n".join(lines), encoding="utf-8")
    return int(different > 0)


def _compare(path: Path, names: Sequence[str]) -> int:
    table = json.loads(path.read_text(encoding="utf-8"))
    here = _environment()
    if table["environment"] != here:
        print(f"note: the table was made with {table['environment']}, this is {here}; bits may differ for that alone")
    different = 0
    for name in names:
        difference = _difference(table["cells"].get(name), CELLS[name])
        different += bool(difference)
        print(f"{'DIFFERENT' if difference else 'same':10}{name}{difference}", flush=True)
    print(f"{different} of {len(names)} cells differ from {path.name}")
    return int(different > 0)


def _difference(stored: Mapping[str, Any] | None, cell: Cell) -> str:
    """What a cell has now where the table has something else; empty where nothing differs."""
    if stored is None:
        return ": not in the table"
    try:
        now = digest(cell)
    except Exception as error:  # one broken cell must not hide the others
        return f": {type(error).__name__}: {error}"
    keys = [key for key in {**stored, **now} if stored.get(key) != now.get(key)]
    return "".join(f"\n    {key}: expected {stored.get(key)}, got {now.get(key)}" for key in keys)


def digest(cell: Cell) -> dict[str, Any]:
    """Train the cell and return one hash over all tensors of its model, what each client spent, and the test MRR.

    Numbers are kept as `repr` writes them: equal text means equal bits.
    """
    with tempfile.TemporaryDirectory() as folder:
        public = _public_graph(Path(folder))
        given = {key: value for key, value in {**cell.base, **cell.options}.items() if value is not None}
        options: dict[str, Any] = {key: public if value == PUBLIC_GRAPH else value for key, value in given.items()}
        shards = fk.split(_graph(cell.triples), clients=3, by=cell.by, seed=5)
        out = Path(folder, "run") if cell.on_disk else None
        run = fk.train(shards, out=out, seed=3, noise_seed=4, threads=1, **options)
    return {
        "sha256": _hash(run.tensors),
        "epsilon": {client: repr(float(spent)) for client, spent in run.epsilon().items()},
        "mrr": repr(float(run.metrics[-1]["both.realistic.mrr"])),
    }


def _hash(tensors: Mapping[str, Any]) -> str:
    """One digest over the names, types, shapes and bytes of all tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


@cache
def _graph(triples: int, seed: int = 1) -> fk.Graph:
    return fk.synthetic_graph(entities=150, relations=6, triples=triples, seed=seed)


def _public_graph(folder: Path) -> str:
    """A file with other triples of the same names."""
    graph = _graph(2000, seed=2)
    lines = [
        f"{graph.entities[head]}\t{graph.relations[relation]}\t{graph.entities[tail]}\n"
        for head, relation, tail in graph.train.tolist()
    ]
    path = folder / "public.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def _environment() -> dict[str, str]:
    """What the bits depend on, without anything that would tell the machine."""
    return {
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "machine": platform.machine(),
    }
