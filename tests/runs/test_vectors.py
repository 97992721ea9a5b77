"""Vectors go out and come back by name, in every format; what cannot be read says why."""

from pathlib import Path

import numpy as np
import pytest

import fedkge as fk
from fedkge.base.errors import ConfigurationError, DataError, RunError
from fedkge.configuration import Configuration
from fedkge.runs.run import Run
from fedkge.runs.vectors import FORMATS, export_vectors, read_vectors, start_vectors
from fedkge.runs.vectors.exporting import ENDINGS

NAMES = ["plain", "two words", "100%", "tab\there", "Zoë", "NA", '"quoted"', "trailing ", "%20"]
OPTIONS = {"rounds": 1, "local_epochs": 1, "negatives": 4, "seed": 3, "evaluate_every": 0}


def odd_graph() -> fk.Graph:
    pairs = [(head, tail) for head in NAMES for tail in NAMES if head != tail]
    triples = [(head, "is near" if place % 2 else "plain", tail) for place, (head, tail) in enumerate(pairs)]
    return fk.Graph.from_names("odd", train=triples[:-4], test=triples[-4:])


@pytest.fixture(scope="module", params=["transe", "rotate", "distmult", "complex"])
def run(request: pytest.FixtureRequest) -> Run:
    return fk.train(odd_graph(), model=request.param, dimension=5, **OPTIONS)


@pytest.fixture(scope="module")
def shards() -> fk.Shards:
    return fk.split(fk.synthetic_graph(60, 4, 500, seed=1), clients=2, by="entity", seed=2)


@pytest.mark.parametrize(
    ("form", "file"), [("safetensors", "v.safetensors"), ("parquet", "v.parquet"), ("word2vec", "v.txt")]
)
def test_what_goes_out_comes_back(run: Run, form: str, file: str, tmp_path: Path) -> None:
    exported = export_vectors(run, tmp_path / file, form)
    assert exported.counts == {"entities": len(NAMES), "relations": 2}
    vectors = read_vectors(tmp_path / file)
    tables = run.embedding().tables
    for kind, names, table in (
        ("entities", run.shards[0].entities, tables.entities),
        ("relations", run.shards[0].relations, tables.relations),
    ):
        assert list(vectors[kind]) == list(names)
        for name, row in zip(names, table, strict=True):
            assert np.array_equal(vectors[kind][name], row)


@pytest.mark.parametrize("model", ["transe", "rotate", "distmult", "complex"])
def test_pykeen_arrays_score_as_the_model_does(model: str, tmp_path: Path) -> None:
    run = fk.train(fk.synthetic_graph(40, 3, 200, seed=1), model=model, dimension=4, **OPTIONS)
    export_vectors(run, tmp_path / "pykeen", "pykeen")
    entities = np.load(tmp_path / "pykeen" / "entities.npy", allow_pickle=False).astype(np.complex128)
    relations = np.load(tmp_path / "pykeen" / "relations.npy", allow_pickle=False).astype(np.complex128)
    triples = run.shards[0].test
    heads, middle, tails = entities[triples[:, 0]], relations[triples[:, 1]], entities[triples[:, 2]]
    scores = {
        "transe": 10 - np.abs(heads + middle - tails).sum(axis=1),
        "rotate": 10 - np.abs(heads * middle - tails).sum(axis=1),
        "distmult": (heads * middle * tails).real.sum(axis=1),
        "complex": (heads * middle * tails.conj()).real.sum(axis=1),
    }[model]
    assert scores == pytest.approx(run.embedding().score_triples(triples), abs=1e-4)


def test_pykeen_maps_hold_the_ids(tmp_path: Path) -> None:
    graph = fk.synthetic_graph(40, 3, 200, seed=1)
    export_vectors(fk.train(graph, dimension=4, **OPTIONS), tmp_path / "pykeen", "pykeen")
    lines = (tmp_path / "pykeen" / "entity_to_id.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id\tlabel"
    assert [line.split("\t")[1] for line in lines[1:]] == list(graph.entities)


def test_a_name_that_breaks_lines_is_refused_by_tsv(tmp_path: Path) -> None:
    run = fk.train(odd_graph(), dimension=4, **OPTIONS)
    with pytest.raises(DataError, match="tabs and line ends"):
        export_vectors(run, tmp_path / "pykeen", "pykeen")


@pytest.mark.parametrize(
    ("strategy", "kinds"), [("fede", {"entities"}), ("fedr", {"relations"}), ("pooled", {"entities", "relations"})]
)
def test_without_a_client_only_what_all_share(
    shards: fk.Shards, strategy: str, kinds: set[str], tmp_path: Path
) -> None:
    run = fk.train(shards, strategy=strategy, dimension=4, **OPTIONS)
    exported = export_vectors(run, tmp_path / "v.safetensors")
    assert set(exported.counts) == kinds == set(read_vectors(tmp_path / "v.safetensors"))
    assert set(exported.left_out) == {"entities", "relations"} - kinds
    one = export_vectors(run, tmp_path / "one.safetensors", client="client-1")
    assert one.counts == {"entities": len(shards[1].entities), "relations": len(shards[1].relations)}


def test_isolated_clients_share_nothing(shards: fk.Shards, tmp_path: Path) -> None:
    run = fk.train(shards, strategy="isolated", dimension=4, **OPTIONS)
    with pytest.raises(ConfigurationError, match="client-0, client-1"):
        export_vectors(run, tmp_path / "v.safetensors")


def test_every_format_has_an_ending() -> None:
    assert set(ENDINGS) == set(FORMATS)
    assert all(ENDINGS.values())


def test_unknown_format_and_unwritable_place(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean parquet"):
        export_vectors(run, tmp_path / "v", "parkett")
    (tmp_path / "file").write_text("")
    for form in FORMATS:
        with pytest.raises(DataError, match="could not be written"):
            export_vectors(run, tmp_path / "file" / "v", form)


def test_a_run_directory_is_read_and_disagreement_is_averaged(shards: fk.Shards, tmp_path: Path) -> None:
    run = fk.train(shards, strategy="isolated", dimension=4, out=tmp_path / "run", **OPTIONS)
    vectors = read_vectors(tmp_path / "run")
    assert vectors["entities"].keys() == set(shards[0].entities) | set(shards[1].entities)
    name = next(name for name in shards[0].entities if name in shards[1].entities)
    rows = [
        run.embedding(client).tables.entities[shard.entities.id_of(name)]
        for client, shard in zip(run.clients, shards, strict=True)
    ]
    assert vectors["entities"][name] == pytest.approx(np.mean(rows, axis=0))
    assert read_vectors(tmp_path / "run" / "model.safetensors")["entities"].keys() == vectors["entities"].keys()


def test_training_starts_from_the_vectors_and_ids_stay(shards: fk.Shards, tmp_path: Path) -> None:
    first = fk.train(shards, dimension=4, **OPTIONS)
    export_vectors(first, tmp_path / "v.parquet", "parquet")
    still = {**OPTIONS, "learning_rate": 1e-30}
    second = fk.train(shards, dimension=4, init=str(tmp_path / "v.parquet"), **still)
    assert list(second.entities) == list(first.entities)
    assert second.tensors["entities"] == pytest.approx(first.tensors["entities"], abs=1e-6)


def test_start_vectors_are_checked_before_a_run_is_touched(shards: fk.Shards, tmp_path: Path) -> None:
    export_vectors(fk.train(shards, dimension=4, **OPTIONS), tmp_path / "v.txt", "word2vec")
    with pytest.raises(DataError, match=r"expected entities of 8 numbers \(TransE, dimension 8\), got 4"):
        fk.train(shards, dimension=8, init=str(tmp_path / "v.txt"), out=tmp_path / "run", **OPTIONS)
    assert not (tmp_path / "run").exists()
    (tmp_path / "other.txt").write_text("1 4\nnobody 1 2 3 4\n")
    with pytest.raises(DataError, match="none of its names"):
        fk.train(shards, dimension=4, init=str(tmp_path / "other.txt"), **OPTIONS)
    assert start_vectors(Configuration(), shards.graphs) is None


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("v.txt", b"", "two numbers"),
        ("v.txt", b"0 3\n", "expected vectors, got none"),
        ("v.txt", b"1 3\na 1 2\n", r"v.txt:2: expected 3 numbers after the name, got 2"),
        ("v.txt", b"1 2\na 1 x\n", r"v.txt:2: expected 2 numbers"),
        ("v.txt", b"2 1\na 1\n", "expected 2 vectors as its first line says, got 1"),
        ("v.txt", b"1 1\na nan\n", "not finite"),
        ("v.txt", b"1 1\n\xff 1\n", r"v\.txt:2: expected UTF-8"),
        ("v.safetensors", b"", "damaged"),
        ("v.safetensors", b"garbage that is long enough to have a header", "damaged"),
        ("v.parquet", b"", "expected Parquet"),
        ("v.bin", b"", "ends in .safetensors, .parquet, .txt"),
    ],
)
def test_unreadable_files_say_what_was_expected(file: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / file)


def test_safetensors_without_names_and_parquet_with_other_columns(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415
    from safetensors.numpy import save_file  # noqa: PLC0415

    save_file({"weights": np.zeros((2, 2), np.float32)}, tmp_path / "v.safetensors")
    with pytest.raises(DataError, match="names in the metadata"):
        read_vectors(tmp_path / "v.safetensors")
    save_file({"entities": np.zeros((2, 2), np.float32)}, tmp_path / "w.safetensors", metadata={"entities": '["a"]'})
    with pytest.raises(DataError, match="each of 1 names"):
        read_vectors(tmp_path / "w.safetensors")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "v.parquet")
    with pytest.raises(DataError, match="kind, name and vector"):
        read_vectors(tmp_path / "v.parquet")
    pq.write_table(pa.table({"kind": ["thing"], "name": ["a"], "vector": [[1.0]]}), tmp_path / "w.parquet")
    with pytest.raises(DataError, match="expected kind entity or relation"):
        read_vectors(tmp_path / "w.parquet")


def test_a_missing_path_and_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run directory or file"):
        read_vectors(tmp_path / "nowhere")
    with pytest.raises(RunError):
        read_vectors(tmp_path)
