"""kill -9 of a site, of the server, of everything: the right model and honest ledgers in the end."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="a federation of processes needs fedkge[nvflare]")

from fedkge.accounting.ledger import Ledger
from fedkge.deploy.coordinator import handed_out
from fedkge.deploy.layout import Layout
from fedkge.runs import round as rounds
from fedkge.runs.transcript import Transcript
from tests.deploy.small import DEFENDED, Parties, deployed, embedded, notes, small_layout, spent_rounds

pytestmark = pytest.mark.slow

SERVER = rounds.Parties(server=True)

SLOW_ROUNDS = {**DEFENDED, "local_steps": 4000, "batch_size": 64, "rounds": 6, "record": "all"}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return laid_out(tmp_path, silence_seconds=20)


@pytest.fixture
def patient(tmp_path: Path) -> Layout:
    """For tests that compare tables: a busy machine may keep a site that lives silent for a while."""
    return laid_out(tmp_path, silence_seconds=180)


def laid_out(folder: Path, silence_seconds: int) -> Layout:
    limits = {"round-seconds": 600, "silence-seconds": silence_seconds}
    return small_layout(folder, DEFENDED, owners=2, training=SLOW_ROUNDS, federation=limits)


def honest(layout: Layout) -> None:
    """Whatever the server holds was charged, no round twice, and nothing beyond the budget."""
    record = Transcript(layout.settings.run)
    for name, path in layout.sites.items():
        run = path.parent / "run"
        charged = spent_rounds(run, name)
        assert {number for number in record.rounds() if name in record.read(number, SERVER).uploads} <= set(charged)
        assert len(set(charged)) == len(charged)
        assert Ledger.read(run / "ledger.jsonl").spent(name) <= 8.0


def test_the_server_is_killed_within_a_round_and_again_between_rounds(patient: Layout) -> None:
    with Parties(patient) as parties:
        parties.start()
        parties.wait_for_round(1)
        parties.wait(lambda: parties.sites["client-0"].status.get("state") == "training")
        parties.server.kill()
        parties.server.start()
        parties.wait_for_round(3)
        parties.server.kill()
        parties.server.start()
        parties.finish()
    assert np.array_equal(deployed(patient), embedded(patient))
    honest(patient)
    for name, path in patient.sites.items():
        assert spent_rounds(path.parent / "run", name) == [1, 2, 3, 4, 5, 6]


def test_a_site_is_killed_within_a_round_is_left_out_and_comes_back(layout: Layout) -> None:
    with Parties(layout) as parties:
        parties.start()
        parties.wait_for_round(1)
        parties.wait(lambda: parties.sites["client-1"].status.get("state") == "training")
        parties.sites["client-1"].kill()
        parties.wait(lambda: "client-1 was left out" in notes(layout.settings.run))
        parties.sites["client-1"].start()
        parties.finish()
    honest(layout)
    run = layout.sites["client-1"].parent / "run"
    charged = spent_rounds(run, "client-1")
    assert {1, 6} <= set(charged) <= {1, 2, 3, 4, 5, 6}
    assert "client-1" not in Transcript(layout.settings.run).read(2, SERVER).uploads
    assert (run / "model.safetensors").exists(), "it was there again at the end"
    assert spent_rounds(layout.sites["client-0"].parent / "run", "client-0") == [1, 2, 3, 4, 5, 6]


def test_a_killed_site_is_missed_soon_and_back_only_when_it_is(tmp_path: Path) -> None:
    """The round may take an hour; the silence of a dead site ends its part of it long before. NVFlare still has the
    dead site on its list then, but nobody says that it is back, and no round waits for it again.
    """
    training = {**SLOW_ROUNDS, "rounds": 20}
    limits = {"round-seconds": 3600, "silence-seconds": 20}
    layout = small_layout(tmp_path, DEFENDED, owners=2, training=training, federation=limits)
    back = "client-1 is back"
    with Parties(layout) as parties:
        parties.start()
        parties.wait_for_round(1)
        parties.wait(lambda: parties.sites["client-1"].status.get("state") == "training")
        parties.sites["client-1"].kill()
        parties.wait(lambda: "client-1 was left out" in notes(layout.settings.run))
        parties.wait_for_round(parties.server.status["round"] + 3)
        assert back not in parties.server.output.read_text(encoding="utf-8")
        assert notes(layout.settings.run).count("client-1 was left out") == 1
        parties.sites["client-1"].start()
        parties.finish()
    assert back in parties.server.output.read_text(encoding="utf-8")
    honest(layout)


def test_a_site_that_comes_back_after_the_last_round_still_gets_the_model(layout: Layout) -> None:
    with Parties(layout) as parties:
        parties.start()
        parties.wait_for_round(4)
        parties.sites["client-1"].kill()
        parties.wait(lambda: handed_out(layout.settings.run) == {"client-0", "client-2"})
        parties.sites["client-1"].start()
        parties.finish()
    honest(layout)
    assert handed_out(layout.settings.run) == set(layout.sites)
    assert (layout.sites["client-1"].parent / "run" / "model.safetensors").exists()


def test_everything_is_killed_at_once(patient: Layout) -> None:
    with Parties(patient) as parties:
        parties.start()
        parties.wait_for_round(2)
        for party in (parties.server, *parties.sites.values()):
            party.kill()
        parties.start()
        parties.finish()
    assert np.array_equal(deployed(patient), embedded(patient))
    honest(patient)
