"""One real run of 100 rounds, attacked and audited, whose names try to break the page; and copies with a ledger."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.promises import Promise
from fedkge.api.training import start, train
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.experiments.recorded_audit import run_audit
from fedkge.graph import Vocabulary
from fedkge.graph.split import split
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.events import Charge, SampledGaussian
from tests.accounting.complete import FACTS
from tests.experiments.test_recorded_views import tiny

NASTY = (
    "<script>document.title = 'owned'</script>",
    "\"quoted\" 'name' & <b>bold</b>",
    "\u202eright to left override",
    "\u05e9\u05dc\u05d5\u05dd \u0639\u0631\u0628\u064a",
    "</td></table><img src=x onerror=alert(1)>",
    "two\nlines {{ 7 * 7 }} {% raw %}",
)
ATTACKS = ("upload-difference", "si-centres", "cip", "cip-distance-ratio", "trajectory")
ROUNDS = 100


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No defence; 100 rounds, five attacks, four designs, an audit by seeded coins."""
    graph = synthetic_graph(entities=120, relations=4, triples=1500, seed=1)
    plain = list(graph.entities)
    graph = replace(graph, entities=Vocabulary((*(f"{nasty} {place}" for place in range(20) for nasty in NASTY),)))
    assert len(graph.entities) == len(plain)
    shards = split(graph, clients=3, by="entity", seed=3, overlap=0.6)
    folder = tmp_path_factory.mktemp("report") / "run"
    options = {"rounds": ROUNDS, "record": "every:5", "canaries": 400, "canary_coins": "seeded"}
    trained = start(tiny(**options), shards.graphs, folder)
    run_attacks(trained, AttackPlan(attacks=ATTACKS, count=100, calibration=20))
    run_audit(trained, ("upload-difference", "cip"))
    return folder


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody attacked or audited."""
    folder = tmp_path_factory.mktemp("bare") / "bare"
    graph = synthetic_graph(entities=60, relations=4, triples=400, seed=1)
    shards = split(graph, clients=2, seed=7)
    train(shards, rounds=1, dimension=8, negatives=8, strategy="isolated", seed=1, out=folder)
    return folder


def promise(run: Path, target: Path, multiplier: float) -> Path:
    """A copy of the run whose ledger, written by the ledger itself, says what such noise would have cost."""
    shutil.copytree(run, target, ignore=shutil.ignore_patterns("transcript", "checkpoints"))
    charges = (Charge(SampledGaussian(rate=0.01, multiplier=multiplier), steps=5),)
    (target / "ledger.jsonl").unlink()
    ledger = Ledger.open(target / "ledger.jsonl")
    for client in ("client-0", "client-1"):
        ledger.promise(Promise(client, 1e-5, 8.0, "rdp", largest_round=charges, facts=FACTS))
        for number in range(1, 21):
            ledger.charge(client, number, charges)
            ledger.release(client, number)
    return target


@pytest.fixture(scope="session")
def overclaimed(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undefended run under a ledger that claims much noise."""
    return promise(run, tmp_path_factory.mktemp("overclaimed") / "overclaimed", multiplier=8.0)


@pytest.fixture(scope="session")
def defended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with real noise, a real ledger, and a seed of the noise, which must be said loudly."""
    folder = tmp_path_factory.mktemp("defended") / "defended"
    shards = split(synthetic_graph(entities=60, relations=4, triples=400, seed=1), clients=2, seed=7)
    options = {"epsilon": 8.0, "accountant": "rdp", "noise_seed": 3, "batch_size": 64, "evaluate_every": 0}
    train(shards, rounds=3, dimension=8, seed=1, threads=1, out=folder, **options)
    return folder
