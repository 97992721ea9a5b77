"""Attack, audit and report read what a deployed federation left behind."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="start-up kits need fedkge[nvflare]")

from fedkge.api.paid_metrics import release_metrics
from fedkge.api.reports import write_report
from fedkge.api.training import open_run
from fedkge.base.errors import PrivacyError, RunError
from fedkge.defences import parse
from fedkge.deploy.gathering import PlantedCanaries, gather
from fedkge.deploy.layout import Layout
from fedkge.deploy.site_settings import read_site
from fedkge.experiments.experiment import AttackPlan, run_attacks
from fedkge.experiments.recorded_audit import run_audit
from fedkge.experiments.targets.canaries import CANARIES, insert_canaries, keep_canaries
from fedkge.runs.run import Run
from tests.deploy.small import DEFENDED, RECOMMENDED, InOneProcess, deployed, shards, small_layout

ROUNDS = 3


def gathered(folder: Path, owners: int, defence: Mapping[str, Any] = DEFENDED) -> tuple[Layout, Run]:
    data = shards()
    options = {"canaries": 40, "canary-coins": "independent", "clients": len(data), "seed": 7}
    graphs, canaries = insert_canaries(data.graphs, parse(options))
    folder.mkdir(exist_ok=True)
    keep_canaries(folder, canaries, graphs)
    training = {**defence, "rounds": ROUNDS, "record": "all"}
    layout = small_layout(
        folder / "all", defence, owners, training, data=replace(data, graphs=tuple(graphs)), record="all"
    )
    with InOneProcess(layout) as federation:
        federation.run()
    sites = [read_site(path) for path in layout.sites.values()]
    assert canaries is not None
    planted = PlantedCanaries(folder / CANARIES, 40, len(canaries.inserted))
    return layout, open_run(gather(layout.settings, sites, folder / "everything", planted))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Layout, Run]:
    return gathered(tmp_path_factory.mktemp("gathered"), owners=2)


def test_attack_audit_and_report(everything: tuple[Layout, Run]) -> None:
    _, run = everything
    plan = AttackPlan(attacks=("upload-difference", "cip"), designs=("C",), every=ROUNDS, fewer=True)
    assert run_attacks(run, plan)
    assert run_audit(run, attacks=("upload-difference",)) is not None
    assert run.directory is not None
    write_report(run.directory, run.directory / "report.html", beside=[])
    assert "epsilon" in (run.directory / "report.html").read_text(encoding="utf-8")


def test_a_gathered_federation_on_copies_is_audited_by_what_was_sent(tmp_path: Path) -> None:
    """Checkpoints, where copies are, stay at their sites: who looks for one is told."""
    _, run = gathered(tmp_path, 2, RECOMMENDED)
    found = run_audit(run)
    assert "copy" not in found.adversaries
    assert found.asked is None
    assert found.result.gaussian_bound is None
    with pytest.raises(RunError, match="audit where it was trained"):
        run_audit(run, attacks=("copy",))


def test_everybody_s_promise_and_every_charge_are_there(everything: tuple[Layout, Run]) -> None:
    layout, run = everything
    assert run.ledger is not None
    for name in layout.sites:
        assert run.ledger.promises[name].epsilon == 8.0
        assert [entry.round for entry in run.ledger.by_round(name)] == [1, 2, 3]
        assert all(entry.released for entry in run.ledger.by_round(name))


def test_no_figure_is_charged_to_copies_of_the_sites_ledgers(tmp_path: Path) -> None:
    layout, run = gathered(tmp_path, owners=1, defence=RECOMMENDED)
    assert run.directory is not None
    with pytest.raises(PrivacyError, match="release it at each site"):
        release_metrics(run.directory, 1.0)
    assert release_metrics(read_site(layout.sites["client-0"]).run, 1.0)


def test_a_folder_in_use_is_not_written_to(everything: tuple[Layout, Run]) -> None:
    layout, run = everything
    assert run.directory is not None
    with pytest.raises(RunError, match="new or empty"):
        gather(layout.settings, [read_site(path) for path in layout.sites.values()], run.directory)


def test_with_all_rows_shared_there_is_one_table_by_name(tmp_path: Path) -> None:
    layout, run = gathered(tmp_path, owners=1)
    ordered = np.sort(np.asarray(run.tensors["entities"]), axis=0)
    assert np.array_equal(ordered, np.sort(deployed(layout), axis=0))
