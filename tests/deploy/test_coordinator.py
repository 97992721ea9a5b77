"""Coordinator and members with bytes between them, in one process: the same numbers, and every disturbance."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("nvflare", reason="start-up kits need fedkge[nvflare]")

from fedkge import __version__
from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run
from fedkge.base.errors import RunError
from fedkge.cli.app import app
from fedkge.deploy.coordinator import HANDED_OUT, handed_out, usual_seconds
from fedkge.deploy.layout import Layout
from fedkge.deploy.policy import proposal
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.status import read_status
from fedkge.deploy.wire import encode
from fedkge.federation.messages import Align, Aligned, Failure, Invite, Upload
from fedkge.report.shareable import is_listed
from fedkge.runs.directory import RunDirectory
from fedkge.store.durable_files import load_tensors
from tests.deploy.small import (
    DEFENDED,
    OPEN,
    InOneProcess,
    after,
    broken_off,
    deployed,
    embedded,
    notes,
    small_layout,
    spent_rounds,
    trained,
)


@pytest.mark.parametrize("privacy", [OPEN, DEFENDED], ids=["open", "defended"])
def test_the_table_is_that_of_fedkge_train(tmp_path: Path, privacy: dict[str, object]) -> None:
    layout = small_layout(tmp_path, privacy, training=privacy if privacy is DEFENDED else None)
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    assert np.array_equal(deployed(layout), trained(layout))


@pytest.mark.parametrize("privacy", [OPEN, DEFENDED], ids=["open", "defended"])
def test_rows_of_one_owner_stay_and_the_table_is_that_of_the_embedded_engine(
    tmp_path: Path, privacy: dict[str, object]
) -> None:
    layout = small_layout(tmp_path, privacy, owners=2, training=privacy if privacy is DEFENDED else None)
    with InOneProcess(layout) as federation:
        federation.run()
    assert np.array_equal(deployed(layout), embedded(layout))
    sizes = [len(load_tensors(path.parent / "run/model.safetensors")[0]["entities"]) for path in layout.sites.values()]
    assert len(deployed(layout)) < sum(sizes)


def test_a_site_has_a_run_of_its_own_that_can_be_evaluated(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, owners=2)
    with InOneProcess(layout) as federation:
        federation.run()
    run = open_run(layout.sites["client-1"].parent / "run")
    assert run.evaluate("test")["client-0"].metrics()["both.realistic.mrr"] > 0


def test_the_run_of_the_server_does_not_speak_for_its_sites(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, DEFENDED, training=DEFENDED)
    with InOneProcess(layout) as federation:
        federation.run()
    for command in (["evaluate"], ["account"], ["report"], ["attack"], ["predict", "--head", "a", "--relation", "b"]):
        done = CliRunner().invoke(app, [*command, str(layout.settings.run)])
        assert done.exit_code == RunError.exit_code, done.output
        assert "at the sites" in done.output


def test_the_server_writes_its_rounds_and_no_metrics(tmp_path: Path) -> None:
    """It ranks nothing: whoever reads the metrics of its run finds none, and no damaged file."""
    layout = small_layout(tmp_path, owners=2)
    with InOneProcess(layout) as federation:
        federation.run()
    run = RunDirectory(layout.settings.run)
    assert run.read_metrics() == []
    lines = (run.path / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["round"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines
    for folder in (run.path, *(path.parent / "run" for path in layout.sites.values())):
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        assert [name for name in files if not is_listed(name)] == [], "say in fedkge.report.shareable who may have it"


def test_a_new_job_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, DEFENDED, owners=2, training=DEFENDED)
    broken_off(layout, "client-2", 5)  # invitation, greeting, shares, two uploads, and then the power goes
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    assert np.array_equal(deployed(layout), embedded(layout))
    for name, path in layout.sites.items():
        assert spent_rounds(path.parent / "run", name) == [1, 2, 3, 4]


def test_a_site_that_is_missing_is_left_out_and_comes_back(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, owners=2)
    with InOneProcess(layout) as federation:
        federation.sites["client-0"].spoil = after(4, lambda _: encode(Upload(1, {}, 0, None)))
        federation.run()
    assert "client-0 was left out" in notes(layout.settings.run)
    assert read_status(layout.settings.run)["round"] == 4


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.full((1, 8), np.nan, np.float32), "expected shape"),
        (np.zeros((3, 8), np.float32), "expected shape"),
    ],
)
def test_a_wrong_upload_is_refused_and_the_rest_go_on(tmp_path: Path, rows: np.ndarray, reason: str) -> None:
    layout = small_layout(tmp_path)
    with InOneProcess(layout) as federation:
        federation.sites["client-1"].spoil = after(2, lambda _: encode(Upload(1, {"entities": rows}, 1, None)))
        assert federation.run() == "finished"
    assert "client-1 was left out" in notes(layout.settings.run)


def test_the_time_left_is_that_of_rounds_in_which_nobody_was_lost(tmp_path: Path) -> None:
    """A round that waits for a lost site may take an hour; the rounds after it do not."""
    layout = small_layout(tmp_path, owners=2)
    with InOneProcess(layout) as federation:
        federation.sites["client-0"].spoil = after(4, lambda _: encode(Upload(1, {}, 0, None)))
        federation.run()
    lines = (layout.settings.run / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    history = [json.loads(line) for line in lines]
    assert [record.get("left_out", []) for record in history][:2] == [[], ["client-0"]]
    undisturbed = [record["seconds"] for record in history if "left_out" not in record]
    assert len(undisturbed) < len(history)
    assert usual_seconds(history) == np.median(undisturbed)


def test_a_job_makes_a_round_before_it_ends_for_a_site_that_is_back(tmp_path: Path) -> None:
    layout = small_layout(tmp_path)
    mark = layout.settings.run / "rejoin"
    states = []
    while not states or states[-1] == "rejoin":
        with InOneProcess(layout) as federation:
            federation.sites["client-0"].spoil = lambda content: (mark.touch(), content)[1]
            states.append(federation.run())
    assert states == ["rejoin", "rejoin", "rejoin", "finished"]
    assert np.array_equal(deployed(layout), trained(layout))


def test_a_site_that_refuses_a_later_job_is_named_and_the_rest_go_on(tmp_path: Path) -> None:
    layout = small_layout(tmp_path)
    broken_off(layout, "client-2", 3)
    path = layout.sites["client-1"]
    path.write_text(path.read_text(encoding="utf-8").replace("rounds = 4", "rounds = 2"), encoding="utf-8")
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    assert read_status(layout.settings.run)["refused"] == ["client-1"]


def test_the_first_round_needs_everybody(tmp_path: Path) -> None:
    layout = small_layout(tmp_path)
    with InOneProcess(layout, ("client-0", "client-1")) as federation, pytest.raises(RunError, match="client-2"):
        federation.run()
    assert read_status(layout.settings.run)["state"] == "failed"


def test_a_later_job_does_not(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, DEFENDED, training=DEFENDED)
    broken_off(layout, "client-2", 3)
    with InOneProcess(layout, ("client-0", "client-1")) as federation:
        assert federation.run() == "finished"
    assert "client-2 does not have the model" in notes(layout.settings.run)
    with InOneProcess(layout) as federation:
        federation.run()
    assert (layout.sites["client-2"].parent / "run" / "model.safetensors").exists()


def test_a_site_whose_budget_is_spent_says_goodbye_and_the_rest_go_on(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, {**DEFENDED, "noise": 2.0}, training=DEFENDED)
    path = layout.sites["client-0"]
    path.write_text(path.read_text(encoding="utf-8").replace("epsilon = 8.0", "epsilon = 2.5"), encoding="utf-8")
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    assert read_status(layout.settings.run)["gone"] == ["client-0"]
    assert Ledger.read(path.parent / "run" / "ledger.jsonl").spent("client-0") <= 2.5
    assert len(spent_rounds(layout.sites["client-1"].parent / "run", "client-1")) == 4


def test_a_site_with_another_key_is_not_let_in(tmp_path: Path) -> None:
    layout = small_layout(tmp_path)
    path = layout.sites["client-2"]
    (path.parent / "other.key").write_text(f"fedkge-consortium-key-1 {bytes(range(32)).hex()}\n", encoding="utf-8")
    (path.parent / "other.key").chmod(0o600)
    path.write_text(path.read_text(encoding="utf-8").replace("../../consortium.key", "other.key"), encoding="utf-8")
    with InOneProcess(layout) as federation, pytest.raises(RunError, match="client-2"):
        federation.run()
    assert "its key or its name rules differ" in notes(layout.settings.run)


@pytest.mark.parametrize("damage", [b"{", b"{}", b"[1]", b"\xff", b"[" * 100_000])
def test_a_damaged_list_of_who_has_the_model_is_an_error_that_names_it(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / HANDED_OUT).write_bytes(damage)
    with pytest.raises(RunError, match=f"{HANDED_OUT}.*offers the model to all sites again"):
        handed_out(tmp_path)


def test_float16_changes_little(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, federation={"wire": '"float16"'})
    with InOneProcess(layout) as federation:
        federation.run()
    np.testing.assert_allclose(deployed(layout), trained(layout), atol=0.02)
    assert not np.array_equal(deployed(layout), trained(layout))


def test_terms_that_a_site_refuses_reach_the_server_with_a_reason(tmp_path: Path) -> None:
    layout = small_layout(tmp_path)
    path = layout.sites["client-1"]
    path.write_text(path.read_text(encoding="utf-8").replace("rounds = 4", "rounds = 2"), encoding="utf-8")
    with InOneProcess(layout) as federation, pytest.raises(RunError, match="client-1"):
        federation.run()
    assert "this site allows at most 2" in notes(layout.settings.run)


def test_joint_pseudonyms_go_round_once_and_the_table_is_that_of_the_embedded_engine(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, owners=2, alignment="joint")
    broken_off(layout, "client-0", 6)
    kept = _pseudonyms(layout)
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    assert np.array_equal(deployed(layout), embedded(layout))
    assert kept == _pseudonyms(layout)
    assert len(kept) == len(layout.sites)


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_a_ring_that_broke_is_repeated_by_itself_and_gives_the_same_pseudonyms(tmp_path: Path, calls: int) -> None:
    """One site stops after its invitation, its own list, another's, one more; the last has its pseudonyms by then."""
    layout = small_layout(tmp_path, owners=2, alignment="joint")
    broken_off(layout, "client-1", calls)
    before = _pseudonyms(layout)
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    after = _pseudonyms(layout)
    assert {name: after[name] for name in before} == before
    assert np.array_equal(deployed(layout), embedded(layout))


def _pseudonyms(layout: Layout) -> dict[str, bytes]:
    files = {name: path.parent / "run" / "pseudonyms.json" for name, path in layout.sites.items()}
    return {name: file.read_bytes() for name, file in files.items() if file.exists()}


def test_a_site_whose_names_change_in_the_middle_of_a_ring_is_refused(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, owners=2, alignment="joint")
    broken_off(layout, "client-1", 3)
    graph = Path(read_site(layout.sites["client-0"]).graph)
    for dictionary in graph.glob("*.dict"):
        dictionary.unlink()
    with (graph / "train.txt").open("a", encoding="utf-8") as file:
        file.write("a guess\trelation\tanother guess\n")
    with InOneProcess(layout) as federation, pytest.raises(RunError, match="another list of client-0's entities"):
        federation.run()


def test_a_ring_that_has_begun_takes_no_other_sites(tmp_path: Path) -> None:
    """Else a server and one site could try out as many lists of names as they invent sites."""
    layout = small_layout(tmp_path, owners=2, alignment="joint")
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    with InOneProcess(layout) as federation:
        site = federation.sites["client-0"]
        site.handle(Invite(__version__, "try", proposal(layout.settings.configuration)))
        known = site.handle(Align(tuple(layout.sites)))
        assert isinstance(known, Aligned), known
        other = site.handle(Align((*layout.sites, "mallory")))
        assert isinstance(other, Failure)
        assert "expected the ring of client-0, client-1, client-2" in other.reason
    assert "joint alignment among client-0, client-1, client-2" in notes(layout.sites["client-0"].parent / "run")


def test_a_joint_alignment_that_a_site_spoils_trains_nothing(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, owners=2, alignment="joint")
    wrong = encode(Aligned("client-0", ("client-1",), b"x", b"y"))
    with InOneProcess(layout) as federation:
        federation.sites["client-1"].spoil = after(1, lambda _: wrong)
        with pytest.raises(RunError, match="stopped at client-1"):
            federation.run()
    assert not (layout.settings.run / "checkpoints" / "server.safetensors").exists()
