"""No `repr` shows the name of an entity, and none fills a screen: checked on every object that real runs make."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import typing
from collections import defaultdict
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import fedkge as fk
from fedkge.api.opening import opened
from fedkge.graph import Graph
from fedkge.graph.graph import SPLITS
from fedkge.graph.synthetic import synthetic_graph

MARK = "Qzx"
"""In every name of an entity, and in nothing else."""
LONGEST, MOST_LINES = 2_000, 12
KEPT = 5
"""So many objects of each class are looked at."""
OPTIONS: dict[str, Any] = {"rounds": 2, "dimension": 8, "negatives": 8, "seed": 3, "threads": 1, "record": "all"}
FOREIGN = ("nvflare",)
NAMES_OF_ATTACKS = "fedkge.experiments.attacking."
"""Where `names` are those of attacks."""
ATTACKED = ("cip", "cia", "si-centres", "upload-difference")


def modules() -> list[Any]:
    """All modules of the package that need no optional library."""
    names = (found.name for found in pkgutil.walk_packages(fk.__path__, "fedkge."))
    return [importlib.import_module(name) for name in names if not any(part in name for part in FOREIGN)]


def classes() -> set[type]:
    """All classes that fedkge defines."""
    found = {value for module in modules() for value in vars(module).values() if isinstance(value, type)}
    return {kind for kind in found if kind.__module__.startswith("fedkge.")}


def named_graph() -> Graph:
    """A graph whose names can be recognised."""
    graph = synthetic_graph(entities=60, relations=4, triples=500, seed=1)
    names = [(f"{MARK}{head}", f"r{relation}", f"{MARK}{tail}") for head, relation, tail in graph.all_triples.tolist()]
    return Graph.from_names("named", names[:440], names[440:460], names[460:])


class Kept(defaultdict[type, list[Any]]):
    """The first objects of each class that were made."""

    def watch(self, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep what this class makes from now on."""
        made = kind.__init__

        @wraps(made)
        def keeping(this: Any, *arguments: Any, **options: Any) -> None:
            made(this, *arguments, **options)
            if len(self[type(this)]) < KEPT:
                self[type(this)].append(this)

        monkeypatch.setattr(kind, "__init__", keeping)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[Kept]:
    """What is made while graphs are read, and runs are trained, attacked, audited, asked and reported."""
    kept, folder = Kept(list), tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for kind in classes():
            if dataclasses.is_dataclass(kind) and kind.__module__ != "fedkge.base.tabular":
                kept.watch(kind, monkeypatch)
        graph = named_graph()
        write(graph, folder / "graph")
        shards = fk.split(fk.load(folder / "graph"), clients=2, seed=7, overlap=1.0)
        canaries: dict[str, Any] = {"canaries": 40, "canary_coins": "independent", "canary_source": "shared"}
        run = fk.train(shards, out=folder / "open", **{**OPTIONS, **canaries})
        kept[fk.Run].append(run)
        results = [
            run.evaluate(),
            run.attack(*ATTACKED, every=2),
            run.audit(),
            run.report(),
            run.export(),
            run.remaining(),
        ]
        answer = run.predict("r0", head=f"{MARK}{0}") if f"{MARK}{0}" in run.entities else ask(run)
        defended = fk.train(shards, out=folder / "defended", epsilon=8.0, **OPTIONS)
        fk.train(shards, defence="noisy-steps", epsilon=8.0, **OPTIONS)
        results += [run.remaining(), defended.remaining(), fk.compare(run, defended), defended.report(), answer]
        results += [opened(folder / "open", data=shards), shards, *shards, run.entities, run.embedding()]
        for result in results:
            kept[type(result)].append(result)
        yield kept


def ask(run: fk.Run) -> Any:
    """An answer to some question of the first client."""
    head, relation, _ = run.shards[0].train[0].tolist()
    return run.predict(run.shards[0].relations[relation], head=run.shards[0].entities[head], client="client-0")


def write(graph: Graph, folder: Path) -> None:
    """The graph's triples as files."""
    folder.mkdir()
    for split in SPLITS:
        rows = (
            (graph.entities[head], graph.relations[relation], graph.entities[tail])
            for head, relation, tail in graph.split(split).tolist()
        )
        (folder / f"{split}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))


def shown(value: Any) -> list[str]:
    """Everything that a print or a notebook shows of an object."""
    html = getattr(type(value), "_repr_html_", None)
    return [repr(value), str(value), *([html(value)] if html else [])]


def test_no_object_shows_a_name_or_fills_a_screen(kept: Kept) -> None:
    wrong = {}
    for kind, values in kept.items():
        for value in values:
            for text in shown(value):
                if MARK in text:
                    wrong[f"{kind.__module__}.{kind.__qualname__}"] = f"a name: {text[:300]}"
                elif not text.startswith("<p>") and (len(text) > LONGEST or text.count("\n") > MOST_LINES):
                    wrong[f"{kind.__module__}.{kind.__qualname__}"] = f"{len(text)} characters: {text[:300]}"
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in sorted(wrong.items()))


def test_classes_that_these_runs_do_not_make_show_no_name_either(kept: Kept) -> None:
    """Those of a deployed site and of the demo graph, filled with names by their fields' types."""
    holders = {kind for kind in classes() if dataclasses.is_dataclass(kind) and holds_names(kind)}
    holders = {kind for kind in holders if not kind.__module__.startswith(NAMES_OF_ATTACKS)}
    assert len(holders & set(kept)) > 10
    for kind in sorted(holders - set(kept), key=lambda kind: kind.__qualname__):
        for text in shown(filled(kind)):
            assert MARK not in text, text
            assert len(text) < LONGEST, text


def holds_names(kind: type) -> bool:
    """Whether a field is a vocabulary, a graph, triples or a list of names."""
    return any(
        any(word in str(field.type) for word in ("Graph", "Vocabulary", "Shards", "Triples"))
        or (field.name in ("names", "labels", "head", "tail", "heads", "tails") and "str" in str(field.type))
        for field in dataclasses.fields(kind)
    )


def filled(kind: type) -> Any:
    """An object of a dataclass, made without its constructor: names wherever the type of a field allows them."""
    names = [f"{MARK}{number}" for number in range(1000)]
    fitting = {
        "Graph": named_graph(),
        "Vocabulary": named_graph().entities,
        "dict": {name: [name] for name in names},
        "Mapping": {name: (name,) for name in names},
        "tuple[str": tuple(names),
        "frozenset[str": frozenset(names),
        "Sequence[str": names,
        "bytes": "".join(names).encode(),
    }
    made = object.__new__(kind)
    for field in dataclasses.fields(kind):
        value = next((value for word, value in fitting.items() if str(field.type).startswith(word)), None)
        object.__setattr__(made, field.name, value)
    return made
