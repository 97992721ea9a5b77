"""Whatever a run directory, a configuration or a file of vectors holds, a reader gives a value or an error."""

from __future__ import annotations

import json
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import fedkge as fk
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.ledger_lines import CHECKSUM, sealed
from fedkge.api.training import open_run, resume
from fedkge.base.errors import ConfigurationError, DataError, FedkgeError, RunError
from fedkge.cli.app import app
from fedkge.configuration import read_toml
from fedkge.defences import OPTIONS, parse
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.status import Status, read_status
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.experiments.recorded_audit import run_audit
from fedkge.report.gather import gather
from fedkge.runs.directory import RunDirectory
from fedkge.runs.round import Parties
from fedkge.runs.transcript import Transcript
from fedkge.runs.vectors.exporting import export_vectors
from fedkge.runs.vectors.reading import read_vectors
from fedkge.store.durable_files import load_tensors, save_tensors
from tests.hostile.mutations import harmless, mutated_bytes, mutated_json, mutated_value

OFTEN = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
SELDOM = settings(OFTEN, max_examples=40)


@pytest.fixture(scope="module")
def shards() -> Any:
    return fk.split(fk.synthetic_graph(entities=60, relations=4, triples=800, seed=1), clients=2, seed=7, overlap=0.6)


@pytest.fixture(scope="module")
def trained(shards: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was attacked and audited."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    options = {"canaries": 40, "canary_coins": "independent", "canary_source": "victim", "record": "all", "seed": 1}
    run = fk.train(shards, rounds=2, dimension=8, negatives=8, out=folder, **options)
    run_attacks(run, AttackPlan(attacks=("upload-difference", "si-centres"), count=20, calibration=5))
    run_audit(run, ("upload-difference",))
    return folder


def write_tensor(path: Path, kind: str, shape: list[int], data: bytes, names: str) -> None:
    """A safetensors file with one table `entities`, written by hand: any type of numbers, any names."""
    entry = {"dtype": kind, "shape": shape, "data_offsets": [0, len(data)]}
    head = json.dumps({"__metadata__": {"entities": names}, "entities": entry}).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)


@pytest.mark.parametrize("name", ["metrics.jsonl", "attacks.json", "exposed.json", "audit.json"])
@OFTEN
@given(data=st.data())
def test_results_in_the_report(name: str, data: st.DataObject, trained: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    if not target.exists():
        shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints", "*.safetensors"))
    content = (trained / name).read_bytes()
    (target / name).write_bytes(data.draw(mutated_json(content, lines=name.endswith("l"))))
    harmless(lambda: gather(target, "for-owner"))
    harmless(lambda: gather(target, "shareable"))


def test_a_curve_has_as_many_true_as_false_positive_rates(trained: Path, tmp_path: Path) -> None:
    """Found by chance: the page reads both together."""
    shutil.copytree(trained, tmp_path / "run")
    path = tmp_path / "run" / "attacks.json"
    content = json.loads(path.read_bytes())
    curve = next(outcome["metrics"]["roc"] for outcome in content["outcomes"] if "roc" in outcome["metrics"])
    curve["tpr"].pop()
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RunError, match="as many tpr as fpr"):
        gather(tmp_path / "run", "for-owner")


def test_every_part_of_a_result_may_be_anything(trained: Path, tmp_path: Path) -> None:
    """The sixteen places of the report, and all others, one after the other: removed, and of another kind."""
    target = tmp_path / "run"
    shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints", "*.safetensors"))
    lines = (trained / "metrics.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    said: list[str] = []
    for key in [*last, *(("clients", "client-0", inner) for inner in last["clients"]["client-0"])]:
        way = key if isinstance(key, tuple) else (key,)
        for value in (None, "x", [], {}, -1, "absent"):
            changed = json.loads(lines[-1])
            holder = changed
            for part in way[:-1]:
                holder = holder[part]
            if value == "absent":
                del holder[way[-1]]
            else:
                holder[way[-1]] = value
            (target / "metrics.jsonl").write_text("\n".join([*lines[:-1], json.dumps(changed)]) + "\n")
            try:
                gather(target, "for-owner")
            except RunError as error:
                said.append(str(error))
    assert len(said) > 50
    assert all(f"metrics.jsonl:{len(lines)}: " in text for text in said)


@pytest.mark.parametrize("name", ["config.toml", "entities.txt", "relations.txt", "model.safetensors", "ledger.jsonl"])
@SELDOM
@given(data=st.data())
def test_opening_and_starting_from_a_run(
    name: str, data: st.DataObject, trained: Path, shards: Any, tmp_path: Path
) -> None:
    target = tmp_path / "run"
    if not target.exists():
        shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints"))
    (target / name).write_bytes(data.draw(mutated_bytes((trained / name).read_bytes())))
    harmless(lambda: open_run(target, data=shards))
    harmless(lambda: read_vectors(target))


def test_names_that_are_not_utf_8(trained: Path, shards: Any, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints"))
    (target / "entities.txt").write_bytes(b"one\ntwo\xff\n")
    with pytest.raises(RunError, match=r"entities\.txt:2: expected UTF-8 text, got the byte b'\\xff'"):
        open_run(target, data=shards)


@SELDOM
@given(data=st.data())
def test_tensors_and_facts_with_a_right_checksum(
    data: st.DataObject, trained: Path, shards: Any, tmp_path: Path
) -> None:
    """Somebody who can write a checksum too: a model and checkpoints with other arrays and facts."""
    target = tmp_path / "run"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript"))
    name = data.draw(
        st.sampled_from(["model.safetensors", "checkpoints/server.safetensors", "checkpoints/client-0.safetensors"])
    )
    tensors, facts = load_tensors(target / name)
    facts = data.draw(mutated_value(facts))
    changed = data.draw(st.sampled_from(sorted(tensors)))
    odd = st.sampled_from(
        [
            np.zeros((0, 3), np.float32),
            np.zeros(5, np.int32),
            np.full(tensors[changed].shape, -1, np.int64),
            np.full(tensors[changed].shape, 10**9, np.int64),
            tensors[changed].astype(np.float64),
            np.zeros((2, 2, 2), np.float32),
        ]
    )
    match data.draw(st.sampled_from(["facts", "array", "gone", "more"])):
        case "array":
            tensors[changed] = data.draw(odd)
        case "gone":
            del tensors[changed]
        case "more":
            tensors["entities/x"] = data.draw(odd)
        case _:
            pass
    save_tensors(target / name, tensors, facts)
    (target / "model.safetensors").touch()
    harmless(lambda: open_run(target, data=shards).evaluate(controls=False))
    harmless(lambda: read_vectors(target))
    if name != "model.safetensors":
        (target / "model.safetensors").unlink()
        harmless(lambda: resume(target, data=shards, threads=1))


def test_numbers_that_numpy_does_not_have(tmp_path: Path) -> None:
    names = json.dumps(["a", "b"])
    for kind, width in (("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("BOOL", 1)):
        write_tensor(tmp_path / "v.safetensors", kind, [2, 2], bytes(4 * width), names)
        with pytest.raises(DataError, match=r"v\.safetensors: .*'entities' has numbers of type (BF16|F8|BOOL)"):
            read_vectors(tmp_path / "v.safetensors")
        with pytest.raises(RunError, match=r"v\.safetensors: .*'entities' has numbers of type (BF16|F8|BOOL)"):
            load_tensors(tmp_path / "v.safetensors")


@OFTEN
@given(data=st.data())
def test_start_vectors(data: st.DataObject, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(data.draw(mutated_bytes(b"2 3\na 1 2 3\nb%20c 1.5 -2e3 .5\n")))
    (tmp_path / "v.relations.txt").write_bytes(data.draw(mutated_bytes(b"1 1\nr 1\n")))
    harmless(lambda: read_vectors(tmp_path / "v.txt"))
    names = json.dumps(data.draw(mutated_value(["a", "b"])))
    table = data.draw(
        st.sampled_from(
            [np.zeros((2, 2), np.float32), np.full((2, 2), 1e300), np.zeros((2, 0), np.float32), np.zeros(2), np.eye(3)]
        )
    )
    kind = {"float32": "F32", "float64": "F64"}[table.dtype.name]
    write_tensor(tmp_path / "v.safetensors", kind, list(table.shape), table.tobytes(), names)
    harmless(lambda: read_vectors(tmp_path / "v.safetensors"))


VECTORS = {
    "flat": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64())),
    "nested": pa.array([[[1.0]], [[2.0]]]),
    "words": pa.array([["1"], ["2"]]),
    "gaps": pa.array([[1.0, None], None], pa.list_(pa.float32())),
    "numbers": pa.array([1.0, 2.0]),
    "huge": pa.array([[1e300], [1.0]]),
    "fixed": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
}


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("names", [["a", "b"], ["a", "a"], ["a", None], [1, 2], [b"\xff", b"x"]])
@pytest.mark.parametrize("kinds", [["entity", "relation"], ["entity", "entity"], ["thing", None], [1, 2]])
def test_parquet_of_vectors(vectors: str, names: list[Any], kinds: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"kind": kinds, "name": names, "vector": VECTORS[vectors]}), path)
    good = vectors in ("flat", "fixed") and names == ["a", "b"] and kinds[0] == "entity"
    if good:
        assert sum(map(len, read_vectors(path).values())) == 2
        return
    if names == ["a", "a"] and kinds == ["entity", "relation"] and vectors in ("flat", "fixed"):
        assert set(read_vectors(path)) == {"entities", "relations"}  # an entity and a relation may share a name
        return
    with pytest.raises(DataError, match=r"v\.parquet"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("v.txt", "3 1\na 1\nb 2\na 3\n", "the name of line 2 again in line 4"),
        ("v.txt", "²  1\na 1\n", "v.txt:1: expected word2vec text"),
        ("v.txt", "1 ²\na 1\n", "v.txt:1: expected word2vec text"),
        ("v.txt", "1 1\na ²\n", "v.txt:2: expected 1 numbers after the name"),
        ("v.txt", "1 1\na 1e300\n", "not finite in single precision"),
    ],
)
def test_words_of_vectors(file: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_vectors(tmp_path / file)
    assert said in str(caught.value)


def test_a_name_that_safetensors_has_twice(tmp_path: Path) -> None:
    write_tensor(tmp_path / "v.safetensors", "F32", [3, 1], bytes(12), '["secret", "b", "secret"]')
    with pytest.raises(DataError, match="the name of row of entities 1 again in row of entities 3") as caught:
        read_vectors(tmp_path / "v.safetensors")
    assert "secret" not in str(caught.value)


TOML = (
    b'[data]\nsource = "nations"\n[model]\nname = "rotate"\n[training]\nrounds = 3\n'
    b'[privacy]\nepsilon = 8.0\ndefence = "recommended"\n[experiment]\nseed = 1\n'
)
SITE = b'name = "north"\nfederation = "study"\ngraph = "g.tsv"\n[privacy]\nepsilon = 4\n[limits]\nrounds = 5\n[names]\n'
FEDERATION = b'name = "study"\nserver = "localhost"\nsites = ["a", "b"]\n[training]\nrounds = 3\n'


@OFTEN
@given(data=st.data())
def test_toml_files(data: st.DataObject, tmp_path: Path) -> None:
    for name, content in (("run.toml", TOML), ("site.toml", SITE), ("federation.toml", FEDERATION)):
        (tmp_path / name).write_bytes(data.draw(mutated_bytes(content)))
    harmless(lambda: parse(read_toml(tmp_path / "run.toml")))
    harmless(lambda: read_site(tmp_path / "site.toml"))
    harmless(lambda: read_federation(tmp_path / "federation.toml"))


@OFTEN
@given(key=st.sampled_from(sorted(OPTIONS)), data=st.data())
def test_options_of_another_kind(key: str, data: st.DataObject) -> None:
    odd: st.SearchStrategy[Any] = st.sampled_from([5, 0, -1, True, False, 1.5, "", "x", [], [1], {}, {"a": 1}, 10**400])
    harmless(lambda: parse({key: data.draw(odd)}))
    harmless(lambda: parse({"epsilon": 8.0, key: data.draw(odd)}))


@pytest.mark.parametrize("value", ["5", "0", "false", "[1]", "{a = 1}", "1979-05-27"])
def test_a_defence_that_is_no_name(value: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(f"[privacy]\ndefence = {value}\n")
    with pytest.raises(ConfigurationError, match=r"defence: expected (a name|a value), got"):
        parse(read_toml(tmp_path / "run.toml"))


def test_a_key_in_two_spellings(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[training]\nbatch-size = 5\nbatch_size = 6\n")
    with pytest.raises(ConfigurationError, match=r"\[training\] batch_size: expected it once"):
        parse(read_toml(tmp_path / "run.toml"))


@pytest.mark.parametrize("content", ["x = " + "[" * 50_000, "x = " + "{a=" * 50_000, "[" * 50_000])
def test_deep_toml(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(content)
    with pytest.raises(ConfigurationError, match=r"run\.toml: expected TOML"):
        read_toml(tmp_path / "run.toml")


@pytest.mark.parametrize("name", ["metrics.jsonl", "attacks.json", "exposed.json", "audit.json"])
@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, '"\\ud800"', "[]", "5", "null", ""])
def test_deep_and_odd_json(name: str, content: str, trained: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints", "*.safetensors"))
    (target / name).write_text(content)
    if name == "metrics.jsonl" and not content:
        assert gather(target, "for-owner").utility.rows == ()
        return
    with pytest.raises(RunError, match=name):
        gather(target, "for-owner")


@OFTEN
@given(data=st.data())
def test_ledgers_with_right_checksums(data: st.DataObject, tmp_path: Path) -> None:
    records = [
        {"kind": "promise", "client": "a", "delta": 1e-5, "epsilon": 8.0, "accountant": "rdp", "largest_round": []},
        {"kind": "charge", "client": "a", "round": 1, "charges": []},
        {"kind": "release", "client": "a", "round": 1, "state": "x"},
    ]
    previous, lines = "", []
    for record in data.draw(mutated_value(records).filter(lambda made: isinstance(made, list))):
        if isinstance(record, dict) and CHECKSUM not in record:
            line, previous = sealed(record, previous)
            lines.append(line)
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(data.draw(st.one_of(st.just(b"".join(lines)), mutated_bytes(b"".join(lines)))))
    harmless(lambda: Ledger.read(path))


def test_a_ledger_of_deep_lines(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("[" * 100_000 + "\n{}\n")
    with pytest.raises(FedkgeError, match=r"ledger\.jsonl:1"):
        Ledger.read(tmp_path / "ledger.jsonl")


def test_a_transcript_with_strange_folders(trained: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(trained, target)
    for name in ("round-x", "round-", "round-²", "round-1"):
        (target / "transcript" / name).mkdir()
    (target / "transcript" / "round-000009").write_text("a file")
    assert Transcript(target).rounds() == Transcript(trained).rounds() == [1, 2]
    assert Transcript(target).rounds(Parties(server=True)) == [1, 2]


def test_a_status_of_another_kind_is_none(tmp_path: Path) -> None:
    for content in ("[]", "5", "[" * 100_000, "\x00"):
        (tmp_path / "status.json").write_text(content)
        assert read_status(tmp_path) == {}
        Status(tmp_path)


def test_pipes_in_a_run_directory_are_refused(trained: Path, shards: Any, tmp_path: Path) -> None:
    for name in ("config.toml", "entities.txt", "metrics.jsonl", "model.safetensors", "attacks.json"):
        target = tmp_path / name
        shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints"))
        (target / name).unlink()
        os.mkfifo(target / name)
        with pytest.raises(FedkgeError, match=f"{name}"):
            gather(target, "for-owner") if name == "attacks.json" else open_run(target, data=shards)


@pytest.mark.parametrize("format_name", ["safetensors", "parquet", "word2vec", "pykeen"])
def test_export_into_an_impossible_place(format_name: str, trained: Path, shards: Any, tmp_path: Path) -> None:
    run = open_run(trained, data=shards)
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    places = [
        tmp_path / "file" / "v",
        Path("/proc/none/v"),
        tmp_path / ("x" * 300),
        tmp_path / "a\0b",
        Path("/dev/full/v"),
    ]
    places += [tmp_path / "folder"] if format_name != "pykeen" else [tmp_path / "file"]
    for place in places:
        with pytest.raises(DataError, match=r"could not be written .* choose another --out"):
            export_vectors(run, place, format_name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("format_name", ["safetensors", "parquet", "word2vec"])
def test_a_full_disk_leaves_the_old_file(format_name: str, trained: Path, shards: Any, tmp_path: Path) -> None:
    """A limit on the size of files fails a write in the middle, as a full disk does."""
    run = open_run(trained, data=shards)
    (tmp_path / "vectors").write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(DataError, match="could not be written"):
            export_vectors(run, tmp_path / "vectors", format_name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "vectors").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["vectors"]


def test_export_says_it_on_the_command_line(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = CliRunner().invoke(app, ["export", str(tmp_path / "none"), "--out", str(tmp_path / "file" / "v")])
    assert result.exit_code == RunError.exit_code


def test_the_model_of_other_names_is_refused(trained: Path, shards: Any, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(trained, target, ignore=shutil.ignore_patterns("transcript", "checkpoints"))
    tensors, facts = load_tensors(target / "model.safetensors")
    tensors["own/client-0"] = tensors["own/client-0"] + 10**6
    save_tensors(target / "model.safetensors", tensors, facts)
    with pytest.raises(RunError, match=r"model\.safetensors: expected different row numbers below"):
        open_run(target, data=shards)
    assert RunDirectory(target).read_metrics()
