"""The document: valid, published, the same every time, and traced back to the files it was made from."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest
import tomlkit

from fedkge.accounting.facts import SeededNoise
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.posterior import guess_worth
from fedkge.accounting.promises import Promise
from fedkge.base.errors import PrivacyError, RunError
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence, parse
from fedkge.defences.defence import PublicNumbers
from fedkge.evaluation import weighted_metrics
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge, Geometric, Responses
from fedkge.report import gather, json_schema
from fedkge.report.document import FORMAT, ClientClaim
from fedkge.report.promise_words import mechanism_sentence
from fedkge.report.promised import _guessing
from fedkge.runs.directory import provenance_of
from fedkge.store.data_key import DataKey
from tests.accounting.complete import FACTS

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "report.schema.json"


@pytest.mark.parametrize("name", ["run", "bare", "overclaimed", "defended"])
@pytest.mark.parametrize("copy", ["shareable", "for-owner"])
def test_the_json_is_valid_by_the_published_schema(name: str, copy: str, request: pytest.FixtureRequest) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    content = json.loads(gather(request.getfixturevalue(name), copy).to_json())  # type: ignore[arg-type]
    jsonschema.Draft202012Validator(schema).validate(content)
    assert content["format"] == FORMAT
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({**content, "surprise": 1})


def test_the_published_schema_is_that_of_the_code() -> None:
    published = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert published == json_schema(), "write it again: see docs/how-to/read-the-report.md"


def test_the_same_run_gives_the_same_document(run: Path) -> None:
    assert gather(run).to_json() == gather(run).to_json()


def test_an_auc_comes_from_attacks_json(run: Path) -> None:
    row = next(row for row in gather(run, "for-owner").attacks.rows if (row.attack, row.design) == ("cip", "B"))
    outcomes = json.loads((run / "attacks.json").read_text(encoding="utf-8"))["outcomes"]
    source = [one for one in outcomes if (one["attack"], one["design"]) == ("cip", "B")][-1]
    assert source["round"] == row.round == 100
    assert (row.auc.value, row.auc.low) == (source["metrics"]["auc"]["value"], source["metrics"]["auc"]["low"])


def test_utility_and_controls_come_from_metrics_jsonl(run: Path) -> None:
    rows = gather(run, "for-owner").utility.rows
    record = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert rows[0].both == record["both.realistic.mrr"]
    parts = [(one["triples"], one["controls"]["popularity, epsilon 1"]) for one in record["clients"].values()]
    control = next(row for row in rows if row.name == "popularity, epsilon 1")
    assert control.tail == weighted_metrics(parts)["tail.realistic.mrr"]


def test_the_bound_comes_from_audit_json_and_hashes_from_config_toml(run: Path) -> None:
    document = gather(run, "for-owner")
    audit = json.loads((run / "audit.json").read_text(encoding="utf-8"))
    assert document.audit.largest is not None
    assert (document.audit.largest.epsilon, document.audit.ceiling) == (audit["bound"], audit["ceiling"])
    provenance = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))["provenance"]
    assert provenance["data"] not in document.to_json()


def test_spending_comes_from_the_ledger(overclaimed: Path) -> None:
    from fedkge.accounting.ledger import Ledger  # noqa: PLC0415

    document = gather(overclaimed, "for-owner")
    ledger = Ledger.read(overclaimed / "ledger.jsonl")
    assert document.claim.epsilon == ledger.spent("client-0")
    assert document.claim.promised == 8.0
    (spending,) = document.spending
    assert (spending.rounds[-1], spending.epsilon[-1]) == (20, ledger.spent("client-0"))
    assert list(spending.epsilon) == sorted(spending.epsilon)


def test_a_defended_run_says_what_it_claims_and_that_its_noise_can_be_repeated(defended: Path) -> None:
    document = gather(defended, "for-owner")
    claim = document.claim
    assert claim.promised == 8.0
    assert claim.epsilon is not None
    assert claim.epsilon <= 8.0
    assert [client.within for client in claim.clients] == [True, True]
    assert document.spending[0].rounds == (1, 2, 3)
    assert claim.mechanism.startswith("recommended")
    assert any("combine its counts and its responses" in warning for warning in claim.warnings)
    assert ["One response alone is right with a chance of 99." in line for line in claim.guessing] == [True]
    assert "shows less than an ordinary triple" in document.limits[0]
    assert dict(claim.facts)["copy"].startswith("noisy counts of scale ")
    assert not {"noise", "clip"} & set(dict(claim.facts))
    assert any("research seed" in warning for warning in claim.warnings)
    assert document.method.seed_note.startswith("RESEARCH SEED")
    assert claim.neighbours == "add or remove one triple"
    assert not any("training triples" in line for line in claim.not_covered), "the size is covered too"


def test_clients_whose_copies_differ_are_told_apart() -> None:
    """A client with few triples per entity has other answers than the rest."""
    few, many = (
        ClientClaim(name, 8.0, 1e-5, 8.0, within=True, guess=guess_worth(charges, 8.0, 1e-5))
        for name, charges in (
            ("few", [Charge(Geometric(2 / 7.6)), Charge(Responses(0.4))]),
            ("many", [Charge(Geometric(2 / 2)), Charge(Responses(6.0))]),
        )
    )
    told = list(_guessing([few, many, replace(many, client="more")]))
    assert [line.partition(":")[0] for line in told] == ["few", "many, more"]
    assert "right with a chance of 59.9 %" in told[0]
    assert "right with a chance of 99.8 %" in told[1]


def test_the_mechanism_is_told_in_words() -> None:
    chosen = [parse(options) for options in ({"epsilon": 8.0}, {"noise": 3.0})]
    plans = [chosen_defence(options).plan(options, PublicNumbers(1000, 100), 3.0) for options in chosen]
    copied, stepped = (mechanism_sentence(promise.facts) for plan in plans if (promise := plan.promise("a")))
    assert copied.startswith("recommended: noisy counts, then randomised responses about likely triples, once")
    assert stepped.startswith("noisy-steps: Poisson samples, gradients of single triples clipped to 0.5")


def test_only_the_owner_reads_names(run: Path) -> None:
    shareable, owner = gather(run), gather(run, "for-owner")
    assert owner.exposed.count > 0
    assert (shareable.exposed.count, shareable.exposed.triples) == (0, ())
    named = [triple.head for triple in owner.exposed.triples]
    assert any("script" in name for name in named)
    assert not any("<script" in line or "right to left" in line for line in shareable.to_json().splitlines())


@pytest.mark.parametrize("name", ["run", "overclaimed", "defended"])
def test_the_shareable_copy_is_made_of_configuration_ledger_and_releases_alone(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(name)
    (tmp_path / folder.name).mkdir()
    for file in ("config.toml", "ledger.jsonl"):
        shutil.copy(folder / file, tmp_path / folder.name / file)
    if name == "defended":
        shutil.copytree(folder / "checkpoints", tmp_path / folder.name / "checkpoints")
    document = gather(folder)
    assert document == gather(tmp_path / folder.name)
    assert document.verdict.kind == ("promise" if name == "overclaimed" else "no promise")
    assert bool(document.claim.meaning) == (name == "overclaimed"), "a research seed proves nothing"
    for part in (document.attacks, document.audit, document.exposed):
        assert "owner's copy" in part.missing
    assert "No figure was paid for" in document.utility.missing
    assert document.utility.rows == document.method.files == ()
    assert document.method.targets_seed is None


def test_a_void_promise_of_any_client_is_said(bare: Path, tmp_path: Path) -> None:
    """A gathered run has the promises of many sites, each with options of its own."""
    folder = tmp_path / "gathered"
    shutil.copytree(bare, folder, ignore=shutil.ignore_patterns("checkpoints", "ledger.jsonl"))
    ledger = Ledger.open(folder / "ledger.jsonl")
    seeded = msgspec.structs.replace(FACTS, noise_source=SeededNoise(seed=3))
    for client, facts in (("client-0", FACTS), ("client-1", seeded)):
        ledger.promise(Promise(client, 1e-5, 8.0, "rdp", facts=facts))
    document = gather(folder)
    assert document.verdict.kind == "no promise"
    assert [line for line in document.verdict.remarks if "client-1" in line and "research seed" in line]


def test_what_is_not_there_is_said_in_plain_words(bare: Path) -> None:
    document = gather(bare, "for-owner")
    assert document.verdict.kind == "not tested"
    assert "no attack was run" in document.attacks.missing
    assert "no audit was run" in document.audit.missing
    assert document.claim.mechanism.startswith("No promise")


def test_a_folder_on_this_machine_is_not_told(run: Path) -> None:
    assert str(run.parent) not in gather(run, "for-owner").to_json()


@pytest.mark.parametrize("file", ["attacks.json", "audit.json", "exposed.json"])
def test_a_damaged_file_is_named(run: Path, tmp_path: Path, file: str) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("transcript", "checkpoints"))
    for content in ("{", "[]", '{"format": 1}'):
        (copy / file).write_text(content, encoding="utf-8")
        with pytest.raises(RunError, match=file):
            gather(copy, "for-owner")


def test_other_runs_stand_beside(run: Path, bare: Path) -> None:
    row = gather(run, "for-owner", beside=[bare]).utility.rows[-1]
    assert row.kind == "beside"
    assert "no federation" in row.name
    assert row.note.startswith("not comparable")


def test_a_ledger_without_a_promise_is_an_error_and_no_traceback(bare: Path, tmp_path: Path) -> None:
    """Found by fuzzing: one line that a crash tore, and nothing before it."""
    shutil.copytree(bare, tmp_path / "torn")
    (tmp_path / "torn" / "ledger.jsonl").write_bytes(b'{"promise')
    with pytest.raises(PrivacyError, match=r"expected a promise for each client, got none|[Ll]ines are missing"):
        gather(tmp_path / "torn")


def test_what_was_noticed_in_a_private_file_is_the_owners(bare: Path, tmp_path: Path) -> None:
    shutil.copytree(bare, tmp_path / "run")
    config = tomlkit.parse((tmp_path / "run" / "config.toml").read_text(encoding="utf-8"))
    notice = "3 triples with a literal object were skipped"
    graph = Graph.from_names("g", [("a", "r", "b")], notice=notice)
    for data, told in (("private.nt", ""), ("demo", notice)):
        options = Configuration.of(data=data)
        config["provenance"] = provenance_of([graph], options, DataKey(bytes(range(32))))
        (tmp_path / "run" / "config.toml").write_text(tomlkit.dumps(config), encoding="utf-8")
        assert gather(tmp_path / "run", "for-owner").method.notice == notice
        assert gather(tmp_path / "run").method.notice == told
