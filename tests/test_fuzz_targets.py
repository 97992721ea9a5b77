"""The fuzz targets themselves: their seeds are valid and reach the reader, and a bug in a reader is a finding."""

from contextlib import nullcontext
from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="targets of deployed federations need fedkge[nvflare]")

from fuzz import files, messages
from fuzz.messages import ANSWERS, TARGETS, WIDTH
from fuzz.mutation import mutated_message
from fuzz.targets import all_targets

from fedkge.base.errors import FedkgeError
from fedkge.deploy import wire
from fedkge.deploy.member import Member
from fedkge.deploy.wire import decode, encode
from fedkge.federation.messages import Accept, Failure, Goodbye, Greeting, Kept, RankingMetrics, Sharing, Upload
from tests.deploy.every_message import MESSAGES

ALL = all_targets()


@pytest.mark.parametrize("name", ALL)
def test_the_first_seed_is_read_and_no_seed_is_a_finding(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = ALL[name].seeds(tmp_path)
    judge = ALL[name].make(tmp_path)
    for seed in (*seeds, b"", b"\x00\xff" * 40):
        judge(seed)
    monkeypatch.setattr(files, "suppress", lambda *_: nullcontext())
    (tmp_path / "again").mkdir()
    ALL[name].make(tmp_path / "again")(seeds[0])


def test_an_error_of_another_kind_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("planted")

    seed = encode(Goodbye("x"))
    monkeypatch.setattr(wire, "read_header", broken)
    with pytest.raises(KeyError, match="planted"):
        TARGETS["wire"].make(tmp_path)(seed)
    with pytest.raises(KeyError, match="planted"):
        files.file_target("a", broken, [], ()).make(tmp_path)(b"")
    with pytest.raises(KeyError, match="planted"):
        files.folder_target(files.fixed(a=b""), broken, ()).make(tmp_path)(b"")


def test_the_site_answers_its_seeds_with_more_than_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[type] = set()

    class Listening(Member):
        def answer(self, content: bytes) -> bytes:
            reply = super().answer(content)
            found.add(type(decode(reply)))
            return reply

    monkeypatch.setattr(messages, "Member", Listening)
    TARGETS["site"].make(tmp_path)
    assert {Accept, Greeting, Sharing, Upload, RankingMetrics, Kept} <= found


def test_mutations_reach_both_messages_and_refusals() -> None:
    kept = refused = 0
    for number, message in enumerate(MESSAGES * 20):
        content = mutated_message(encode(message), number)
        assert content is not None
        try:
            decode(content)
            kept += 1
        except FedkgeError:
            refused += 1
    assert kept > 10
    assert refused > 10
    assert mutated_message(b"no message", 1) is None


def test_the_answers_of_the_server_target_fit_its_tables() -> None:
    uploads = [answer for answer in ANSWERS if isinstance(answer, Upload)]
    assert uploads
    assert all(upload.rows["entities"].shape[1] == WIDTH for upload in uploads)
    assert isinstance(ANSWERS[-2], Failure)
