"""One test for all leaks: what may be passed on is the same for neighbouring graphs with the same releases."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.passing_on import ledger_to_pass_on
from fedkge.api.reports import write_report
from fedkge.api.training import start
from fedkge.defences import parse
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.federation import messages
from fedkge.graph.datasets import load
from fedkge.graph.shards import summarise
from fedkge.graph.split import Shards
from fedkge.report import gather
from fedkge.report.document import Document
from fedkge.report.shareable import MESSAGES, OUTPUTS, REFUSED, is_listed
from fedkge.runs.run import Run
from fedkge.runs.vectors.exporting import FORMATS
from tests.neighbours import Releases, graphs, neighbour

SHARDS = graphs()
BASE: dict[str, Any] = {
    "data": "hospitals",
    "clients": 2,
    "rounds": 3,
    "dimension": 8,
    "negatives": 4,
    "local_epochs": 1,
    "seed": 5,
    "threads": 1,
    "evaluate_every": 1,
    "record": "all",
    "epsilon": 8.0,
}
DEFENCES: dict[str, dict[str, Any]] = {
    "recommended": {"defence": "recommended"},
    "recommended, few answers": {"defence": "recommended", "epsilon": 2.0},
    "noisy steps": {"defence": "noisy-steps"},
    "noisy steps, adam": {"defence": "noisy-steps", "optimiser": "adam", "learning_rate": 0.001},
    "noisy steps, relations shared": {"defence": "noisy-steps", "strategy": "fedr"},
    "rows chosen by noisy counts": {"defence": "dp-flames"},
    "rows chosen once": {"defence": "dp-flames", "selection": "fest"},
    "rows chosen by a test": {"defence": "dp-flames", "selection": "ptr", "batch_size": 32},
    "dpsgd": {"defence": "dpsgd"},
    "alone": {"defence": "recommended", "strategy": "isolated"},
    "size agreed on": {"defence": "recommended", "public_triples": 2000},
    "names by threshold": {"defence": "recommended", "names": "threshold"},
}


def trained(folder: Path, shards: Any, **options: Any) -> Run:
    """The whole product: a run on disk, attacked where canaries are in it."""
    run = start(parse({**BASE, **options}), shards.graphs, folder / "run")
    if run.configuration.experiment.canaries:
        run_attacks(run, AttackPlan(attacks=("upload-difference",), designs=("B", "C"), count=40, fewer=True))
        write_report(folder / "run", folder / "run" / "report-for-owner.html", for_owner=True)
    return run


def pair(folder: Path, part: str, shards: Shards = SHARDS, **options: Any) -> tuple[Run, Run]:
    """Two runs on neighbouring graphs with the same releases."""
    releases = Releases()
    with releases.recorded():
        first = trained(folder / "with", shards, **options)
    with releases.forced():
        second = trained(folder / "without", neighbour(shards, part), **options)
    return first, second


def differences(first: Run, second: Run) -> list[str]:
    """The shareable files in which two runs differ."""
    found = []
    for output in OUTPUTS:
        one, other = output.make(first), output.make(second)
        assert one, output.name
        found += [f"{output.name}: {name}" for name in {**one, **other} if one.get(name) != other.get(name)]
    return found


def _case(name: str) -> Any:
    """Rows that are chosen take a calibration of many steps."""
    return pytest.param(name, marks=pytest.mark.slow) if name.startswith("rows") else name


@pytest.mark.parametrize("name", [_case(name) for name in DEFENCES])
def test_neighbours_with_the_same_releases_show_the_same(name: str, tmp_path: Path) -> None:
    first, second = pair(tmp_path, "train", **DEFENCES[name])
    assert differences(first, second) == []
    metrics = [(tmp_path / which / "run" / "metrics.jsonl").read_bytes() for which in ("with", "without")]
    assert metrics[0] != metrics[1], "the neighbours do differ in what is the owner's"


@pytest.mark.parametrize("name", ["recommended", "noisy steps"])
@pytest.mark.parametrize("size", [1201, 1101])
def test_neighbours_whose_sizes_would_be_rounded_to_different_numbers(name: str, size: int, tmp_path: Path) -> None:
    first = replace(SHARDS.graphs[0], train=SHARDS.graphs[0].train[:size])
    shards = replace(SHARDS, graphs=(first, *SHARDS.graphs[1:]))
    assert differences(*pair(tmp_path, "train", shards, **DEFENCES[name])) == []


def from_files(folder: Path, shards: Shards) -> Shards:
    """The clients' graphs as readers number them: in the order of the lines of files."""
    made = []
    for number, shard in enumerate(shards.graphs):
        path = folder / f"client-{number}" / "train.tsv"
        path.parent.mkdir(parents=True)
        names = shard.entities, shard.relations, shard.entities
        lines = ([one[number] for one, number in zip(names, triple, strict=True)] for triple in shard.train.tolist())
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
        made.append(replace(load(str(path)), name=shard.name))
    return Shards(shards.name, tuple(made), summarise(made))


@pytest.mark.parametrize("name", ["recommended", "noisy steps", "names by threshold"])
def test_the_order_in_which_a_file_mentions_names_shows_in_nothing(name: str, tmp_path: Path) -> None:
    """Readers number names as they meet them: the first two would be those of the first triple."""
    shards = replace(SHARDS, graphs=tuple(replace(shard, elsewhere=shard.elsewhere[:0]) for shard in SHARDS.graphs))
    one = from_files(tmp_path / "files" / "with", shards)
    other = from_files(tmp_path / "files" / "without", neighbour(shards, "train"))
    assert set(one.graphs[0].entities) == set(other.graphs[0].entities)
    assert one.graphs[0].entities.names != other.graphs[0].entities.names
    releases = Releases()
    with releases.recorded():
        first = trained(tmp_path / "with", one, **DEFENCES[name])
    with releases.forced():
        second = trained(tmp_path / "without", other, **DEFENCES[name])
    assert differences(first, second) == []


@pytest.mark.parametrize("part", ["valid", "test"])
def test_held_out_triples_show_in_nothing_that_is_passed_on(part: str, tmp_path: Path) -> None:
    first, second = pair(tmp_path, part, **DEFENCES["recommended"])
    assert differences(first, second) == []


def test_attacks_and_canaries_show_in_nothing_that_is_passed_on(tmp_path: Path) -> None:
    first, second = pair(tmp_path, "train", **DEFENCES["recommended"], canaries=60)
    assert differences(first, second) == []
    owners = [(tmp_path / which / "run" / "report-for-owner.json").read_bytes() for which in ("with", "without")]
    assert owners[0] != owners[1]
    for path in (tmp_path / "with" / "run").rglob("*"):
        if path.is_file():
            name = path.relative_to(tmp_path / "with" / "run").as_posix()
            assert is_listed(name), f"{name}: say in fedkge.report.shareable who may have it"


def test_the_test_notices_a_leak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: exact figures in the shareable report, and digests in the ledger that is passed on."""
    first, second = pair(tmp_path, "train", **DEFENCES["recommended"])
    owners = lambda folder, *_: gather(folder, "for-owner")  # noqa: E731
    with monkeypatch.context() as planted:
        planted.setattr(sys.modules["fedkge.report"], "gather", owners)
        assert {"report: report.html", "report: report.json"} <= set(differences(first, second))
    with monkeypatch.context() as planted:
        planted.setattr(sys.modules["fedkge.report.shareable"], "ledger_to_pass_on", lambda content: content)
        assert differences(first, second) == ["ledger: ledger.jsonl"]


def test_every_output_is_listed() -> None:
    """A new format, message or part of the report must say here who may have it."""
    assert {f"export {name}" for name in FORMATS} == {output.name for output in OUTPUTS if "export" in output.name}
    replies = {kind.__name__ for kind in (*get_args(messages.Reply), messages.Failure)}
    assert replies == {*MESSAGES, *REFUSED}
    assert not set(MESSAGES) & set(REFUSED)
    measured = {"attacks", "audit", "utility", "exposed", "verdict", "figures", "limits", "method"}
    public = {"format", "copy", "run", "claim", "spending"}
    assert {field.name for field in fields(Document)} == measured | public


def test_a_ledger_that_is_passed_on_can_be_read(tmp_path: Path) -> None:
    run = start(parse({**BASE, "defence": "recommended"}), SHARDS.graphs, tmp_path / "run")
    content = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    assert run.ledger is not None
    for torn in (b"", b'{"kind": "charge", "cli'):
        (tmp_path / "passed-on.jsonl").write_bytes(ledger_to_pass_on(content + torn))
        passed_on = Ledger.read(tmp_path / "passed-on.jsonl")
        for client in run.ledger.clients:
            assert passed_on.promises[client].facts.data == ""
            assert passed_on.spent(client) >= run.ledger.spent(client)
            assert (passed_on.spent(client) > run.ledger.spent(client)) == bool(torn)
