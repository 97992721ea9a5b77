"""Answers: the best by score, what is known, labels, and whom to ask."""

import numpy as np
import pytest

import fedkge as fk
from fedkge.api import predictions
from fedkge.api.predictions import find, predict
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph import Vocabulary
from fedkge.runs.run import Run

OPTIONS = {"rounds": 2, "dimension": 8, "negatives": 8, "seed": 3, "evaluate_every": 0}


@pytest.fixture(scope="module")
def run() -> Run:
    return fk.train(fk.synthetic_graph(60, 4, 500, seed=1), **OPTIONS)


@pytest.mark.parametrize("side", ["tail", "head"])
def test_answers_are_the_best_of_all_candidates(run: Run, side: str) -> None:
    shard = run.shards[0]
    relation, entities = shard.relations[0], len(shard.entities)
    every = np.zeros((entities, 3), np.int32)
    every[:, 2 if side == "tail" else 0] = np.arange(entities)
    scores = run.embedding().score_triples(every)
    given = {"head" if side == "tail" else "tail": shard.entities[0]}
    answer = predict(run, relation, top=7, **given)
    assert [item.score for item in answer.predictions] == pytest.approx(sorted(scores, reverse=True)[:7], abs=1e-4)
    assert [item.rank for item in answer.predictions] == list(range(1, 8))
    assert answer.side == side


def test_known_says_where_a_triple_stands(run: Run) -> None:
    shard = run.shards[0]
    for split in ("train", "valid", "test"):
        head, relation, tail = shard.split(split)[0].tolist()
        names = shard.entities[head], shard.relations[relation], shard.entities[tail]
        (only,) = predict(run, names[1], head=names[0], tail=names[2]).predictions
        assert (only.head, only.relation, only.tail, only.known) == (*names, split)
    head, relation, _ = shard.train[0].tolist()
    asked = {"relation": shard.relations[relation], "head": shard.entities[head], "top": 60}
    assert "train" in {item.known for item in predict(run, **asked).predictions}
    assert "train" not in {item.known for item in predict(run, **asked, unseen_only=True).predictions}


def test_questions_that_cannot_be_answered(run: Run) -> None:
    relation = run.shards[0].relations[0]
    with pytest.raises(ConfigurationError, match="head or a tail"):
        predict(run, relation)
    with pytest.raises(ConfigurationError, match="at least 1"):
        predict(run, relation, head="e0", top=0)
    with pytest.raises(ConfigurationError, match="expected one of client-0"):
        predict(run, relation, head="e0", client="client-7")
    with pytest.raises(DataError, match=r"unknown entity 'e999'.*e9"):
        predict(run, relation, head="e999")
    with pytest.raises(DataError, match="unknown relation"):
        predict(run, "r0_many_to_manny", head="e0")


def test_the_first_client_that_knows_the_names_answers() -> None:
    shards = fk.split(fk.synthetic_graph(60, 8, 600, seed=1), clients=2, by="relation", seed=5)
    run = fk.train(shards, **OPTIONS)
    relation = shards[1].relations[0]
    head = shards[1].entities[int(shards[1].train[0, 0])]
    assert predict(run, relation, head=head).client == "client-1"
    with pytest.raises(DataError, match="unknown relation"):
        predict(run, relation, head=head, client="client-0")


def test_no_client_knows_both() -> None:
    one = fk.Graph.from_names("one", train=[("a", "r", "b"), ("b", "r", "a")])
    two = fk.Graph.from_names("two", train=[("c", "s", "d"), ("d", "s", "c")])
    from fedkge.graph.split import summarise  # noqa: PLC0415

    run = fk.train(fk.Shards("pair", (one, two), summarise((one, two))), **OPTIONS)
    with pytest.raises(DataError, match="no single client"):
        predict(run, "s", head="a")


def test_labels_find_and_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Vocabulary(("HP:1", "HP:2", "HP:3"))
    words = {"HP:1": "Seizure", "HP:2": "Fever", "HP:3": "fever"}
    assert find(names, "seizure", "entity", words) == 0
    with pytest.raises(DataError, match="ambiguous: write one of HP:2, HP:3"):
        find(names, "Fever", "entity", words)
    with pytest.raises(DataError, match=r"HP:1 \(Seizure\)"):
        find(names, "Seizures", "entity", words)
    with pytest.raises(DataError, match="look like: HP:1"):
        find(names, "zzzzzzzzz", "entity", words)
    monkeypatch.setattr(predictions, "NEAR_AMONG", 2)
    with pytest.raises(DataError, match=r"near: HP:"):
        find(names, "HP:9", "entity", {})
