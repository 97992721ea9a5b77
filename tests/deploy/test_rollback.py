"""A site that comes back with an older ledger is told by the server, refuses, and spends nothing twice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedkge
from fedkge.accounting.ledger import Ledger
from fedkge.api.training import resume
from fedkge.base.errors import PolicyError, PrivacyError, RunError
from fedkge.deploy.layout import Layout
from fedkge.deploy.ledger_ends import LedgerEnd, LedgerEnds
from fedkge.deploy.member import Member
from fedkge.deploy.policy import proposal
from fedkge.deploy.site_settings import read_site
from fedkge.federation.messages import Accept, Fit, Greeting, Hello, Invite, Upload
from fedkge.federation.server import RoundReport, Server
from tests.deploy.small import DEFENDED, InOneProcess, deployed, embedded, notes, small_layout, spent_rounds
from tests.machines import another_machine

SITE = "client-1"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return small_layout(tmp_path, DEFENDED)


def run_of(layout: Layout) -> Path:
    return layout.sites[SITE].parent / "run"


def ends(layout: Layout) -> LedgerEnds:
    return LedgerEnds(layout.settings.run / "checkpoints")


def put(source: Path, target: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(source, target)


def ended_after(layout: Layout, rounds: int) -> None:
    """A job that ends, as by a power cut, between two rounds."""
    run_round = Server.run_round

    def stop(server: Server) -> RoundReport:
        if server.round == rounds:
            raise KeyboardInterrupt
        return run_round(server)

    with pytest.MonkeyPatch.context() as patched, InOneProcess(layout) as federation:
        patched.setattr(Server, "run_round", stop)
        with pytest.raises(KeyboardInterrupt):
            federation.run()


@pytest.fixture
def rolled_back(layout: Layout, tmp_path: Path) -> Layout:
    """Two rounds, a backup of one site, one more round, and the backup put back; `newest` is what it replaces."""
    ended_after(layout, 2)
    shutil.copytree(run_of(layout), tmp_path / "backup")
    ended_after(layout, 3)
    shutil.copytree(run_of(layout), tmp_path / "newest")
    put(tmp_path / "backup", run_of(layout))
    return layout


def test_each_upload_tells_where_the_ledger_ends_and_the_server_keeps_it(layout: Layout) -> None:
    ended_after(layout, 2)
    for name, path in layout.sites.items():
        ledger = Ledger.read(path.parent / "run" / "ledger.jsonl")
        end = ends(layout).of(name)
        assert (end.mark, end.releases) == (ledger.mark, 2)


def test_the_server_tells_a_site_that_has_lost_its_witness_too(rolled_back: Layout) -> None:
    before = (run_of(rolled_back) / "ledger.jsonl").read_bytes()
    with another_machine(), InOneProcess(rolled_back) as federation:
        federation.run()
    assert f"{SITE} does not take part: PrivacyError" in notes(rolled_back.settings.run)
    assert "the server remembers 3 releases of this site; this ledger has" in notes(run_of(rolled_back))
    assert (run_of(rolled_back) / "ledger.jsonl").read_bytes() == before, "it has spent nothing"
    assert not (run_of(rolled_back) / "model.safetensors").exists()


def test_its_own_witness_tells_it_as_well(rolled_back: Layout) -> None:
    (rolled_back.settings.run / "checkpoints" / "ledgers.json").unlink()
    with InOneProcess(rolled_back) as federation:
        federation.run()
    assert "restored from an older copy" in notes(run_of(rolled_back))


def test_with_the_newest_run_directory_it_goes_on_and_the_model_is_the_same(
    rolled_back: Layout, tmp_path: Path
) -> None:
    put(tmp_path / "newest", run_of(rolled_back))
    with another_machine(), InOneProcess(rolled_back) as federation:
        federation.run()
    np.testing.assert_array_equal(deployed(rolled_back), embedded(rolled_back))
    assert spent_rounds(run_of(rolled_back), SITE) == [1, 2, 3, 4]


def test_a_site_that_begins_anew_is_told_too(rolled_back: Layout) -> None:
    """Its budget was spent, whatever it has forgotten."""
    shutil.rmtree(run_of(rolled_back))
    with another_machine(), InOneProcess(rolled_back) as federation:
        federation.run()
    assert "begun again" in notes(run_of(rolled_back))
    assert (run_of(rolled_back) / "ledger.jsonl").read_bytes() == b""


def test_a_site_that_begins_anew_before_its_first_upload_is_told_too(layout: Layout) -> None:
    """Its size has left with the greeting: a second one would be a second release about the same triples."""
    ended_after(layout, 0)
    size = Ledger.read(run_of(layout) / "ledger.jsonl").once(SITE)["size"]
    assert size.charges
    shutil.rmtree(run_of(layout))
    with another_machine(), InOneProcess(layout) as federation:
        federation.run()
    assert f"{SITE} does not take part: PrivacyError" in notes(layout.settings.run)
    assert "begun again" in notes(run_of(layout))
    assert (run_of(layout) / "ledger.jsonl").read_bytes() == b""


def invitation(layout: Layout, **changes: object) -> Invite:
    configuration = layout.settings.configuration
    return replace(Invite(fedkge.__version__, layout.settings.name, proposal(configuration)), **changes)


@pytest.mark.parametrize("releases", [0, 9])
def test_a_server_that_lies_can_only_make_a_site_refuse(layout: Layout, releases: int) -> None:
    with Member(read_site(layout.sites[SITE])) as member:
        with pytest.raises(PrivacyError, match="or the server is wrong; nothing was released"):
            member.handle(invitation(layout, mark="ab" * 16, releases=releases))
        assert Ledger.read(run_of(layout) / "ledger.jsonl").clients == ()
        with pytest.raises(Exception, match="before it was invited"):
            member.handle(Hello())
        assert isinstance(member.handle(invitation(layout)), Accept), "an honest invitation is accepted afterwards"


def test_what_the_server_remembers_is_no_term_of_the_federation(layout: Layout) -> None:
    """A later invitation to the same process may remember more; other terms are still refused."""
    with Member(read_site(layout.sites[SITE])) as member:
        member.handle(invitation(layout))
        greeting = member.handle(Hello())
        assert isinstance(greeting, Greeting)
        rows = {"entities": np.zeros((len(greeting.names["entities"]), greeting.widths["entities"]), np.float32)}
        upload = member.handle(Fit(1, rows))
        assert isinstance(upload, Upload)
        assert (upload.releases, upload.mark != "") == (1, True)
        member.handle(invitation(layout, mark=upload.mark, releases=upload.releases))
        with pytest.raises(PrivacyError, match="the server remembers 2 releases"):
            member.handle(invitation(layout, mark="ab" * 16, releases=2))
        with pytest.raises(PolicyError, match="has accepted other terms"):
            member.handle(invitation(layout, numbers="float16"))


def test_a_site_without_a_defence_tells_nothing(tmp_path: Path) -> None:
    layout = small_layout(tmp_path)
    with InOneProcess(layout) as federation:
        federation.run()
    assert not (layout.settings.run / "checkpoints" / "ledgers.json").exists()


@pytest.mark.parametrize("rounds", [2, 4], ids=["broken off", "finished"])
def test_a_sites_run_is_continued_by_its_federation_alone(layout: Layout, rounds: int) -> None:
    """`resume` would call the site client-0, and promise and spend a second budget on the same triples."""
    if rounds < 4:
        ended_after(layout, rounds)
    else:
        with InOneProcess(layout) as federation:
            federation.run()
    before = (run_of(layout) / "ledger.jsonl").read_bytes()
    with pytest.raises(PrivacyError, match="got one of client-1: this is the run of a site"):
        resume(run_of(layout))
    assert (run_of(layout) / "ledger.jsonl").read_bytes() == before


def test_a_site_whose_first_line_was_torn_goes_on(layout: Layout) -> None:
    """Nobody was told that the line was written, so nothing was released for it."""
    ended_after(layout, 0)
    path = run_of(layout) / "ledger.jsonl"
    shutil.rmtree(run_of(layout) / "checkpoints")
    (layout.settings.run / "checkpoints" / "ledgers.json").unlink(missing_ok=True)
    path.write_bytes(path.read_bytes()[:40])
    with another_machine():
        with InOneProcess(layout) as federation:
            federation.run()
        assert spent_rounds(run_of(layout), SITE)[-4:] == [1, 2, 3, 4]


def upload(mark: str, releases: int) -> Upload:
    return Upload(1, {}, 7, None, mark, releases)


def test_the_newest_end_is_kept_and_an_older_one_is_named(tmp_path: Path) -> None:
    ends = LedgerEnds(tmp_path)
    assert ends.note({"a": upload("1" * 32, 3), "b": upload("", 0)}) == []
    assert ends.note({"a": upload("2" * 32, 2)}) == ["a"]
    assert (ends.of("a"), ends.of("b")) == (LedgerEnd("1" * 32, 3), LedgerEnd())
    assert ends.note({"a": upload("3" * 32, 3)}) == []
    assert LedgerEnds(tmp_path).of("a") == LedgerEnd("3" * 32, 3)
    lost = (b"{", b"[]", b'{"a": 1}', b'{"a": {"mark": "x"}}', b'{"a": {"mark": "x", "releases": 1e999}}')
    for damage in (*lost, b"\xff", b'{"a": ' + b"[" * 100_000):
        (tmp_path / "ledgers.json").write_bytes(damage)
        with pytest.raises(RunError, match=r"ledgers\.json:"):
            ends.of("a")
