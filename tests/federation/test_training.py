from __future__ import annotations

import numpy as np
import pytest

from fedkge.base.errors import ConfigurationError
from fedkge.federation.observer import Observer
from fedkge.federation.training import WATCHED, Federation
from fedkge.models import MODELS, Embedding, Tables, initial_tables, make_scorer
from fedkge.models.embedding import initial_rows
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions
from fedkge.runs.directory import RunDirectory, provenance_of
from fedkge.runs.run import shape_of
from fedkge.store.randomness import client_generator, server_generator
from tests.short_runs import short


def train(shards, observer=None, **options):
    return Federation(tuple(shards), short(**options), observer=observer).run()


def same(one, other):
    assert set(one) == set(other)
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


def centrally(graph, configuration):
    """Central training as anyone would write it: one model, one trainer, a loop."""
    shape = shape_of(configuration)
    scorer = make_scorer(configuration.model.name, shape)
    seed = configuration.experiment.seed
    start = initial_tables(scorer, shape, len(graph.entities), len(graph.relations), client_generator(seed, 0, 0))
    entities = initial_rows(len(graph.entities), scorer.entity_width(shape.dimension), shape, server_generator(seed, 0))
    embedding = Embedding(scorer, Tables(entities, start.relations), shape.margin)
    negatives = Negatives(
        len(graph.entities), configuration.training.negatives, configuration.training.negative_group, "both"
    )
    trainer = Trainer(
        embedding, negatives, TrainingOptions(configuration.training.batch_size, configuration.training.learning_rate)
    )
    for number in range(1, configuration.training.rounds + 1):
        generator = client_generator(seed, 0, number)
        if configuration.training.optimiser_state == "reset":
            trainer.reset_optimisers()
        order, position = np.empty(0, np.int64), 0
        for _ in range(configuration.training.local_steps):
            if position >= len(order):
                order, position = generator.permutation(len(graph.train)), 0
            trainer.step(graph.train[order[position : position + configuration.training.batch_size]], generator)
            position += configuration.training.batch_size
        for _ in range(0 if configuration.training.local_steps else configuration.training.local_epochs):
            trainer.epoch(graph.train, generator)
    return embedding.tables


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("state", ["reset", "kept"])
def test_one_client_equals_central_training_bit_for_bit(graph, model, state):
    options = {"model": model, "optimiser_state": state, "evaluate_every": 0, "local_epochs": 2}
    run = train([graph], **options)
    tables = centrally(graph, short(**options))
    assert run.embedding().tables.entities.tobytes() == tables.entities.tobytes()
    assert run.embedding().tables.relations.tobytes() == tables.relations.tobytes()


def test_local_steps_count_steps_over_epoch_borders(graph):
    steps = len(graph.train) // 32 + 1
    for count in (3, steps, steps + 1):
        options = {"local_steps": count, "evaluate_every": 0, "rounds": 2, "optimiser_state": "kept"}
        federation = Federation((graph,), short(**options))
        tables = federation.run().embedding().tables
        assert federation.clients["client-0"]._trainer.steps == 2 * count
        assert tables.entities.tobytes() == centrally(graph, short(**options)).entities.tobytes()


def test_names_and_rows_belong_together(shards):
    """Each client's view of the model is what the server sends it, through entities.txt as well."""
    federation = Federation(tuple(shards), short(evaluate_every=0))
    run = federation.run()
    for client, shard in zip(run.clients, shards, strict=True):
        assert [run.entities[place] for place in run.tensors[f"own/{client}"]] == list(shard.entities)
        assert [run.relations[place] for place in run.tensors[f"relation_ids/{client}"]] == list(shard.relations)
        sent = federation.server.rows_for(client)["entities"]
        assert run.embedding(client).tables.entities.tobytes() == sent.tobytes()


def test_weighted_aggregation_uses_triples(shards):
    plain, weighted = (train(shards, aggregation=kind, rounds=1) for kind in ("mean", "weighted"))
    assert plain.tensors["entities"].tobytes() != weighted.tensors["entities"].tobytes()


def test_a_minimum_above_the_number_of_clients_is_refused(shards):
    with pytest.raises(ConfigurationError, match="minimum-clients: expected at most the 3 clients there are, got 4"):
        Federation(tuple(shards), short(minimum_clients=4))


class Diary(Observer):
    def __init__(self):
        self.outlook, self.rounds, self.records, self.last, self.triples = None, [], [], None, 0

    def begin(self, outlook):
        self.outlook = outlook

    def advance(self, triples):
        self.triples += triples

    def round_done(self, facts):
        self.rounds.append(facts)

    def evaluated(self, record):
        self.records.append(record)

    def end(self, record):
        self.last = record


def test_observers_hear_of_rounds_triples_and_bytes(shards):
    diary = Diary()
    run = train(shards, observer=diary, evaluate_every=2, rounds=5)
    assert [facts["round"] for facts in diary.rounds] == [1, 2, 3, 4, 5]
    assert [record["round"] for record in diary.records] == [2, 4]
    per_round = sum(len(shard.train) for shard in shards)
    assert diary.outlook.triples_per_round == per_round
    assert diary.triples == 5 * per_round
    rows = {f"client-{i}": len(shard.entities) * 8 * 4 for i, shard in enumerate(shards)}
    assert all(facts["bytes_up"] == facts["bytes_down"] == rows for facts in diary.rounds)
    assert [record["bytes_down"] for record in diary.records] == [2 * sum(rows.values()), 4 * sum(rows.values())]
    assert [*diary.records, diary.last] == list(run.metrics)


def test_metrics_are_weighted_and_per_client(shards):
    last = train(shards).metrics[-1]
    assert last["split"] == "test"
    counts = {f"client-{i}": len(shard.test) for i, shard in enumerate(shards) if len(shard.test)}
    assert {name: line["triples"] for name, line in last["clients"].items()} == counts
    by_hand = sum(line[WATCHED] * counts[name] for name, line in last["clients"].items()) / sum(counts.values())
    assert last[WATCHED] == pytest.approx(by_hand)
    assert all(line["controls"] for line in last["clients"].values())


def scripted(monkeypatch, federation, mrrs):
    """Let validation answer with these numbers, one per round."""
    script = iter(mrrs)
    genuine = federation.server.evaluate

    def evaluate(split):
        mrr = next(script)
        return {
            name: type(score)(score.triples, {**score.metrics, WATCHED: mrr}) for name, score in genuine(split).items()
        }

    monkeypatch.setattr(federation.server, "evaluate", evaluate)


@pytest.mark.parametrize("on_disk", [False, True])
def test_early_stopping_keeps_and_uses_the_best_round(shards, monkeypatch, tmp_path, on_disk):
    configuration = short(rounds=10, patience=2)
    directory = RunDirectory(tmp_path / "run") if on_disk else None
    if directory:
        directory.create(configuration, provenance_of(tuple(shards), configuration, directory.data_key()))
    federation = Federation(tuple(shards), configuration, directory)
    scripted(monkeypatch, federation, [0.1, 0.3, 0.2, 0.4, 0.4, 0.3])
    run = federation.run()
    assert federation.server.round == 6
    assert run.metrics[-1]["round"] == 4
    same(run.tensors, train(shards, rounds=4, evaluate_every=0).tensors)
    own = run.evaluate("test", threads=1)["client-0"].metrics()[WATCHED]
    assert run.metrics[-1]["clients"]["client-0"][WATCHED] == own


def test_without_patience_all_rounds_run_and_the_best_still_wins(shards, monkeypatch):
    federation = Federation(tuple(shards), short(rounds=4))
    scripted(monkeypatch, federation, [0.1, 0.3, 0.2, 0.1])
    run = federation.run()
    assert federation.server.round == 4
    same(run.tensors, train(shards, rounds=2, evaluate_every=0).tensors)


def test_start_vectors_fill_what_they_name(shards):
    name = shards[0].entities[0]
    row = np.full(8, 0.5, np.float32)
    federation = Federation(tuple(shards), short(), start={"entities": {name: row, "nobody": row}})
    assert federation.server.tables["entities"][federation.server.names["entities"][name]].tolist() == row.tolist()
