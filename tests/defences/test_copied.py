"""A federation on noisy copies: paid once and beforehand, and resumed with the copy that was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run, resume, start
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.defences import check_defence, parse
from fedkge.defences.noisy_copy import NoisyCopy
from fedkge.defences.noisy_copy.defence import STEPS
from fedkge.defences.noisy_copy.noisy_copy import cells_of, held_out
from fedkge.federation.messages import Fit, Goodbye, Upload
from fedkge.store.durable_files import load_tensors
from tests.defences.test_defence import client_of, killed, rows_of
from tests.short_runs import SHORT, break_off, ledger_records

COPIED = {"defence": "recommended", "epsilon": 8.0, "noise_seed": 1, "evaluate_every": 0, "dimension": 8}


def copied(**options):
    return parse({**SHORT, **COPIED, **options})


def charges(ledger, client="client-0"):
    """What was paid, entry by entry."""
    return [sorted(type(charge.event).__name__ for charge in entry.charges) for entry in ledger.by_round(client)]


ONCE = ["Geometric", "Responses"]


def test_the_copy_is_paid_in_the_first_round_before_it_is_drawn(shards, monkeypatch):
    ledger = Ledger.in_memory()
    client = client_of(shards[0], copied(), ledger)
    paid = []

    def draw(*_):
        paid.extend(charges(ledger))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_copy.rounds.NoisyCopy.draw", draw)
        with pytest.raises(KeyboardInterrupt):
            client.handle(Fit(1, rows_of(client)))
    assert (paid, client.released) == ([ONCE], None)
    for number in (1, 2, 3):
        client.handle(Fit(number, rows_of(client)))
    assert charges(ledger) == [ONCE, [], []], "the first round had not left, so it was not paid twice"


def test_a_copy_whose_round_failed_is_paid_again_or_not_drawn_again(shards, monkeypatch):
    client = client_of(shards[0], copied(), Ledger.in_memory())
    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_copy.rounds.NoisyCopy.draw", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            client.handle(Fit(1, rows_of(client)))
    assert isinstance(client.handle(Fit(1, rows_of(client))), Goodbye)
    assert client.released is None


def test_a_copy_outlives_a_round_that_failed_after_it_was_drawn(shards, monkeypatch):
    """Training on it again is post-processing: nothing more is paid, and nothing is drawn anew."""
    ledger = Ledger.in_memory()
    client = client_of(shards[0], copied(), ledger)
    for broken in ("fedkge.defences.noisy_copy.rounds.train_plainly", "fedkge.federation.client.Client._commit"):
        with monkeypatch.context() as patched:
            patched.setattr(broken, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                client.handle(Fit(1, rows_of(client)))
    before = client.released
    assert before is not None
    client.handle(Fit(1, rows_of(client)))
    assert client.released.cells is before.cells
    assert [entry for entry in charges(ledger) if entry] == [ONCE]


def test_a_copy_is_on_disk_before_anything_is_trained_on_it(shards, tmp_path, monkeypatch):
    """A site that is switched off in its first round, and asked for the second one when it is back, has its copy."""
    ledger = Ledger.in_memory()
    client = client_of(shards[0], copied(), ledger, tmp_path)
    killed(client, monkeypatch, "fedkge.defences.noisy_copy.rounds.train_plainly")
    again = client_of(shards[0], copied(), ledger, tmp_path)
    assert again.round == 0
    assert again.released is not None
    assert not isinstance(again.handle(Fit(2, rows_of(again))), Goodbye)
    assert [entry for entry in charges(ledger) if entry] == [ONCE]
    with pytest.raises(PrivacyError, match="lines are missing"):
        client_of(shards[0], copied(), Ledger.in_memory(), tmp_path)


def test_a_site_that_was_killed_while_it_drew_has_not_lost_its_budget(shards, tmp_path, monkeypatch):
    """It comes back in a later round, draws for what it had paid, and draws no second time once an upload has left."""
    ledger = Ledger.in_memory()
    client = client_of(shards[0], copied(), ledger, tmp_path)
    for number in (1, 2):
        killed(client, monkeypatch, "fedkge.defences.noisy_copy.rounds.NoisyCopy.draw", number)
        client = client_of(shards[0], copied(), ledger, tmp_path)
        assert client.released is None
    assert isinstance(client.handle(Fit(3, rows_of(client))), Upload)
    assert charges(ledger) == [ONCE, [], []]
    for number in (1, 3, 4):
        new = client_of(shards[0], copied(), ledger)
        assert isinstance(new.handle(Fit(number, rows_of(new))), Goodbye)


def test_a_copy_that_was_trained_on_is_not_drawn_again_for_nothing(shards, tmp_path, monkeypatch):
    """Its own round never left, but a later one did. With the checkpoint lost, that round would draw another copy."""
    ledger, folder = Ledger.in_memory(), tmp_path / "lost"
    folder.mkdir()
    client = client_of(shards[0], copied(), ledger, folder)
    killed(client, monkeypatch, "fedkge.defences.noisy_copy.rounds.train_plainly")
    again = client_of(shards[0], copied(), ledger, folder)
    assert isinstance(again.handle(Fit(2, rows_of(again))), Upload)
    new = client_of(shards[0], copied(), ledger, tmp_path)
    assert isinstance(new.handle(Fit(1, rows_of(new))), Goodbye)


def test_after_the_copy_the_triples_are_looked_at_no_more(shards):
    """With the same copy, clients whose triples are quite different train and upload the same."""
    mirrored = replace(shards[0], train=np.ascontiguousarray(shards[0].train[::-1, [2, 1, 0]]))
    clients = [client_of(shard, copied()) for shard in (shards[0], mirrored)]
    clients[0].handle(Fit(1, rows_of(clients[0])))
    fresh = [client_of(shard, copied()) for shard in (shards[0], mirrored)]
    uploads = []
    for client in fresh:
        client._rounds.released = clients[0].released
        first = client.handle(Fit(1, rows_of(client)))
        uploads.append(client.handle(Fit(2, first.rows)).rows["entities"])
    assert np.array_equal(*uploads)


def with_triples(shard, per_entity):
    """The same entities, with so many of the triples for each of them."""
    return replace(shard, train=shard.train[: int(per_entity * len(shard.entities))])


@pytest.mark.parametrize("per_entity", [1.0, 3.0], ids=["few", "many"])
def test_what_is_drawn_is_what_was_paid_for(shards, monkeypatch, per_entity):
    shard, drawn, ledger = with_triples(shards[0], per_entity), [], Ledger.in_memory()
    draw = NoisyCopy.draw
    monkeypatch.setattr(
        "fedkge.defences.noisy_copy.rounds.NoisyCopy.draw", lambda *given: drawn.append(given[3]) or draw(*given)
    )
    client = client_of(shard, copied(), ledger)
    client.handle(Fit(1, rows_of(client)))
    paid = {type(charge.event).__name__: charge.event for charge in ledger.by_round("client-0")[0].charges}
    assert (paid["Geometric"].scale, paid["Responses"].epsilon) == (drawn[0].profile_scale, drawn[0].epsilon)
    assert (drawn[0].epsilon < 1) == (per_entity < 1.8), "where triples are few, counts get nearly all of epsilon"


def test_shares_follow_the_public_number_of_triples_not_the_true_one(shards):
    few, many = (with_triples(shards[0], per_entity) for per_entity in (1.0, 3.0))
    size = len(few.entities)
    plans = [
        client_of(shard, copied(public_triples=public))._plan.defence.copy
        for public in (size, 3 * size)
        for shard in (few, many)
    ]
    assert plans[0] == plans[1] != plans[2] == plans[3]


@pytest.mark.parametrize("options", [{}, {"local_steps": 5}], ids=["epochs", "steps"])
def test_a_round_ends_where_every_believed_answer_is_held_out(shards, monkeypatch, options, caplog):
    monkeypatch.setattr("fedkge.defences.noisy_copy.rounds.held_out", lambda cells: np.ones(len(cells), bool))
    client = client_of(shards[0], copied(**options), Ledger.in_memory())
    with caplog.at_level("WARNING"):
        assert all(isinstance(client.handle(Fit(number, rows_of(client))), Upload) for number in (1, 2))
    assert caplog.text.count("client-0: no triple is more likely true than false") == 1


def test_the_weight_that_was_found_counts_in_scores(shards):
    run = start(copied(), shards.graphs)
    name = run.clients[0]
    found, prior = float(run.tensors[f"counts/{name}/weight"][0]), run.prior(name)
    assert found > 0
    assert prior.weight == found
    halved = replace(run, configuration=run.configuration.updated(count_weight=0.5))
    assert halved.prior(name).weight == found / 2


def test_held_out_answers_are_not_trained_on_and_choose_the_weight_of_counts(shards, monkeypatch):
    client, taught, judged = client_of(shards[0], copied(), Ledger.in_memory()), [], []

    def weigh(copy, embedding, believed, generator):
        judged.append(believed)
        return 0.75

    monkeypatch.setattr(
        "fedkge.defences.noisy_copy.rounds.train_plainly", lambda _, triples, *__: taught.append(triples)
    )
    monkeypatch.setattr("fedkge.defences.noisy_copy.rounds.weigh", weigh)
    client.handle(Fit(1, rows_of(client)))
    kept = held_out(cells_of(judged[0], client.released.entities))
    assert kept.any()
    np.testing.assert_array_equal(taught[0], judged[0][~kept])
    assert client.released.weight == 0.75


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_the_budget_is_kept_and_used(shards, accountant):
    run = start(copied(accountant=accountant, epsilon=4.0, rounds=3), shards.graphs)
    assert all(3.5 < spent <= 4.0 for spent in run.epsilon().values())
    assert run.ledger.promises["client-0"].facts.mechanism.response_epsilon == pytest.approx(0.2, rel=0.05)


def test_more_rounds_cost_nothing_more(shards):
    spent = [start(copied(rounds=rounds), shards.graphs).epsilon() for rounds in (1, 5)]
    assert spent[0] == spent[1]


def test_an_interrupted_run_goes_on_with_the_copy_that_it_drew(shards, tmp_path, monkeypatch):
    whole = start(copied(rounds=4), shards.graphs, tmp_path / "whole")
    break_off(copied(rounds=4), shards, tmp_path / "halved", rounds=2)
    with monkeypatch.context() as patched:
        patched.setattr("fedkge.defences.noisy_copy.rounds.NoisyCopy.draw", lambda *_: 1 / 0)
        resume(tmp_path / "halved", data=shards)
    halved, undisturbed = tmp_path / "halved", tmp_path / "whole"
    assert (halved / "model.safetensors").read_bytes() == (undisturbed / "model.safetensors").read_bytes()
    assert ledger_records(halved) == ledger_records(undisturbed)
    assert charges(whole.ledger) == [ONCE, [], [], []]


def test_a_model_is_opened_with_its_counts_and_without_its_answers(shards, tmp_path):
    trained = start(copied(), shards.graphs, tmp_path / "run")
    opened = open_run(tmp_path / "run", data=shards)
    key = "both.realistic.mrr"
    for name, evaluation in opened.evaluate(controls=False, threads=1).items():
        assert evaluation.metrics()[key] == trained.metrics[-1]["clients"][name][key]
    tensors, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    assert len(tensors["counts/client-0/cells"]) == 0 < len(tensors["counts/client-0/means"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"count_share": 0.5, "copy_share": 0.4}, "add up to 1"),
        ({"epsilon": 600.0}, "hides nothing"),
        ({"strategy": "pooled"}, f"nobody's to copy: .* {STEPS}"),
        ({"filter_negatives": True, "negative_group": 1}, "filter-negatives to false"),
        ({"patience": 3}, "patience to 0"),
    ],
)
def test_what_does_not_go_with_a_copy_is_refused(options, reason):
    with pytest.raises(PrivacyError, match=reason):
        check_defence(copied(**options))


@pytest.mark.parametrize(
    "options",
    [
        {"noise": 3.0},
        {"selection": "adafest"},
        {"private_negatives": "public"},
        {"noise_schedule": "decay"},
        {"clip": 0.5},
        {"noise_decay": 0.5},
        {"selection_threshold": 9.0},
        {"count_types": 4},
    ],
)
def test_an_option_of_steps_is_refused_with_the_defences_that_take_it(options):
    name = next(iter(options)).replace("_", "-")
    with pytest.raises(ConfigurationError, match=f"leave {name} out, or choose --defence dpsgd .* or noisy-steps$"):
        copied(**options)


def test_a_copys_option_is_refused_with_the_defence_that_takes_it():
    with pytest.raises(ConfigurationError, match=r"leave copy-share out, or choose --defence recommended$"):
        copied(defence="noisy-steps", copy_share=0.5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({}, "needs a budget: --epsilon 8$"), ({"noise": 3.0}, "leave noise out, or choose .* noisy-steps")],
)
def test_a_copy_without_a_budget_is_refused(options, reason):
    with pytest.raises(ConfigurationError, match=reason):
        check_defence(copied(epsilon=None, **options))


@pytest.mark.parametrize("option", [{"strategy": "pooled"}, {"noise": 3.0}, {"noise_schedule": "decay"}])
def test_the_way_out_that_is_named_is_one(option):
    check_defence(copied(defence="noisy-steps", **option))


def test_regularisation_goes_with_a_copy():
    check_defence(copied(model="distmult", regularisation=1e-3))
