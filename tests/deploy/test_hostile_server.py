"""A server that does not keep to the rules: what a site answers, byte for byte, to whatever it is sent."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge import __version__
from fedkge.accounting.ledger import Ledger
from fedkge.deploy.alignment import ownership_tags, pseudonyms
from fedkge.deploy.keys import Key, create_key, read_key
from fedkge.deploy.member import Member
from fedkge.deploy.site_settings import SiteSettings, parse_site
from fedkge.deploy.status import read_status
from fedkge.deploy.wire import decode, encode
from fedkge.federation.client import Client
from fedkge.federation.messages import (
    Accept,
    Evaluate,
    Failure,
    Finish,
    Fit,
    Goodbye,
    Greeting,
    Hello,
    Invite,
    RankingMetrics,
    Share,
    Sharing,
    Upload,
    Word,
)
from fedkge.mechanisms.events import Size
from fedkge.store.durable_files import StorageError

NAMES = [f"person {number}" for number in range(30)]
TERMS = {"rounds": 4, "dimension": 8, "batch-size": 64, "local-epochs": 1}
WIDTH = 8


class Server:
    """Speaks to one site in bytes, as the wire would carry them."""

    def __init__(self, member: Member, key: Key) -> None:
        self.member, self.key = member, key

    def ask(self, message: Any) -> Any:
        return decode(self.member.answer(encode(message)))

    def invite(self, **more: Any) -> Any:
        return self.ask(Invite(__version__, "study", {**TERMS, **more}))

    def settle(self) -> int:
        """Everything up to the first round: another site owns the first 20 names too; how many rows are shared."""
        assert isinstance(self.invite(), Accept)
        greeting = self.ask(Hello())
        assert isinstance(greeting, Greeting)
        return self.share(greeting, NAMES[:20])

    def share(self, greeting: Greeting, common: list[str]) -> int:
        known = set(pseudonyms(self.key, "study", "entities", common))
        places = np.array([place for place, name in enumerate(greeting.names["entities"]) if name in known], np.int64)
        names = [greeting.names["entities"][place] for place in places]
        tags = np.frombuffer(ownership_tags(self.key, "study", "south", names), np.uint8).reshape(-1, 16)
        reply = self.ask(Share({"entities": places}, {"south": Word(places, tags)}))
        assert isinstance(reply, Sharing), reply
        return reply.rows["entities"]

    def fit(self, number: int, rows: int = 20, value: float = 0.1) -> Any:
        return self.ask(Fit(number, {"entities": np.full((rows, WIDTH), value, np.float32)}))


def settings(folder: Path, **more: Any) -> SiteSettings:
    if not (folder / "graph.tsv").exists():
        triples = [f"{NAMES[i % 30]}\tknows\t{NAMES[(7 * i + i // 30 + 1) % 30]}\n" for i in range(123)]
        (folder / "graph.tsv").write_text("".join(triples), encoding="utf-8")
        create_key(folder / "consortium.key")
    least = {"name": "north", "federation": "study", "graph": "graph.tsv", "threads": 1, "limits": {"rounds": 6}}
    least |= {"entities": "from-triples"}
    return parse_site({**least, "privacy": {"defence": "dpsgd", "epsilon": 8, "noise": 4}, **more}, folder=folder)


def key_of(site: SiteSettings) -> Key:
    return read_key(site.key)


@pytest.fixture
def site(tmp_path: Path) -> SiteSettings:
    return settings(tmp_path)


@pytest.fixture
def server(site: SiteSettings) -> Iterator[Server]:
    with Member(site) as member:
        yield Server(member, key_of(site))


def spent(site: SiteSettings) -> int:
    """How many charges the ledger holds."""
    return len(Ledger.read(site.run / "ledger.jsonl").by_round("north"))


def test_an_honest_server_gets_noised_rows_of_shared_entities_alone(server: Server, site: SiteSettings) -> None:
    assert server.settle() == 20
    upload = server.fit(1)
    assert isinstance(upload, Upload)
    assert upload.rows["entities"].shape == (20, WIDTH)
    assert set(upload.rows) == {"entities"}
    size = Ledger.read(site.run / "ledger.jsonl").once(site.name)["size"].value
    assert (upload.loss, upload.triples, spent(site)) == (None, size, 1)
    assert (upload.rows["entities"] != np.float32(0.1)).all(), "every number has noise"


def test_nothing_is_answered_before_the_invitation(server: Server) -> None:
    empty = {"entities": np.zeros((30, WIDTH), np.float32)}
    for request in (Hello(), Fit(1, empty), Evaluate(empty, "test"), Finish(1, empty), Share({})):
        assert isinstance(server.ask(request), Failure)


def test_nothing_is_trained_before_owners_are_shown(server: Server, site: SiteSettings) -> None:
    server.invite()
    server.ask(Hello())
    assert isinstance(server.fit(1, rows=30), Failure)
    assert spent(site) == 0


def test_rows_without_another_owner_never_leave(server: Server) -> None:
    server.invite()
    names = server.ask(Hello()).names["entities"]
    everything = np.arange(30, dtype=np.int64)
    honest = np.frombuffer(ownership_tags(server.key, "study", "south", names), np.uint8).reshape(-1, 16)
    for evidence in (
        {},
        {"south": Word(everything, np.zeros((30, 16), np.uint8))},
        {"south": Word(everything, np.roll(honest, 1, axis=0))},
        {"south": Word(everything[:5], honest[:5])},
        {"ghost": Word(everything, honest)},
        {"north": Word(everything, honest)},
    ):
        reply = server.ask(Share({"entities": everything}, evidence))
        assert isinstance(reply, Failure), evidence
        assert isinstance(server.fit(1, rows=30), Failure)


@pytest.mark.parametrize("terms", [{"rounds": 7}, {"epsilon": 100.0}, {"defence": "none"}, {"noise-seed": 1}])
def test_terms_beyond_the_policy_are_refused(server: Server, terms: dict[str, Any]) -> None:
    reply = server.invite(**terms)
    assert isinstance(reply, Failure)
    assert "north: the server asks for" in reply.reason
    assert isinstance(server.ask(Hello()), Failure)


def test_terms_cannot_change_while_it_runs_nor_afterwards(server: Server, site: SiteSettings) -> None:
    server.settle()
    server.fit(1)
    assert isinstance(server.invite(**{"batch-size": 8}), Failure)
    server.member.__exit__(None, None, None)
    with Member(site) as again:
        reply = Server(again, server.key).invite(**{"batch-size": 8})
    assert isinstance(reply, Failure)


def test_another_federation_or_version_is_refused(server: Server) -> None:
    assert isinstance(server.ask(Invite(__version__, "trial", TERMS)), Failure)
    assert isinstance(server.ask(Invite("0.0.0", "study", TERMS)), Failure)


def test_no_more_rounds_than_agreed_and_none_twice(server: Server, site: SiteSettings) -> None:
    server.settle()
    first = server.fit(1)
    again = server.fit(1)
    assert np.array_equal(first.rows["entities"], again.rows["entities"]), "the same request: the same answer"
    assert spent(site) == 1
    for reply in (server.fit(1, value=0.2), server.fit(0), server.fit(5), server.fit(10**9)):
        assert isinstance(reply, Failure)
    assert isinstance(server.fit(4), Upload)
    assert isinstance(server.fit(2), Failure), "an earlier round is over"
    assert spent(site) == 2


def test_each_round_is_paid_once_also_after_a_restart(server: Server, site: SiteSettings) -> None:
    server.settle()
    upload = server.fit(1)
    server.member.__exit__(None, None, None)
    with Member(site) as again:
        other = Server(again, server.key)
        other.settle()
        same = other.fit(1)
        assert np.array_equal(same.rows["entities"], upload.rows["entities"])
        assert spent(site) == 1
        assert isinstance(other.fit(1, value=0.3), Failure)


def test_other_shared_rows_for_the_same_round_give_no_other_training(server: Server, site: SiteSettings) -> None:
    server.settle()
    server.fit(1)
    server.share(server.ask(Hello()), NAMES[10:])
    server.fit(1)
    assert spent(site) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
def test_wild_rows_get_no_free_answer(server: Server, site: SiteSettings, value: float) -> None:
    """A round that was begun is paid for, also when it fails: that it failed is told, and may depend on triples."""
    server.settle()
    server.fit(1, value=value)
    paid = spent(site)
    reply = server.fit(1, value=0.1)
    assert not isinstance(reply, Upload) or paid == 0 or spent(site) == paid + 1


def test_a_round_that_failed_is_paid_again(server: Server, site: SiteSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    server.settle()

    def fail(*_: object) -> float:
        raise ArithmeticError("depends on triples")

    with monkeypatch.context() as patch:
        patch.setattr(Client, "_train", fail)
        reply = server.fit(1)
        assert isinstance(reply, Failure)
        assert "depends on triples" not in reply.reason
        for number in range(3):
            server.fit(1, value=0.2 + number)
        assert spent(site) == 4, "each failure was told, so each one counts"
    assert isinstance(server.fit(1), (Upload, Goodbye))


def test_a_defended_site_ranks_nothing_even_if_it_may(tmp_path: Path) -> None:
    site = settings(tmp_path, limits={"answer-evaluations": True, "tell-loss": True, "rounds": 6})
    with Member(site) as member:
        server = Server(member, key_of(site))
        server.settle()
        assert isinstance(server.ask(Evaluate({"entities": np.zeros((20, WIDTH), np.float32)}, "train")), Failure)
        assert server.fit(1).loss is None


def test_an_undefended_site_tells_no_loss_and_no_rank_unless_it_may(tmp_path: Path) -> None:
    for allowed in (False, True):
        folder = tmp_path / str(allowed)
        folder.mkdir()
        limits = {"answer-evaluations": allowed, "tell-loss": allowed, "rounds": 6}
        site = settings(folder, privacy={"defence": "none"}, limits=limits)
        with Member(site) as member:
            server = Server(member, key_of(site))
            server.settle()
            assert (server.fit(1).loss is not None) == allowed
            reply = server.ask(Evaluate({"entities": np.zeros((20, WIDTH), np.float32)}, "train"))
            assert isinstance(reply, RankingMetrics) == allowed


def test_no_reply_holds_a_name_a_path_or_the_key(tmp_path: Path) -> None:
    """Whatever is asked, right or wrong, the bytes that leave hold nothing of these."""
    site = settings(tmp_path)
    sent = []
    with Member(site) as member:
        server = Server(member, key_of(site))
        original = member.answer
        member.answer = lambda content: sent.append(original(content)) or sent[-1]  # type: ignore[method-assign, func-returns-value]
        (tmp_path / "consortium.key").chmod(0o644)
        server.invite()
        (tmp_path / "consortium.key").chmod(0o600)
        (tmp_path / "graph.tsv").rename(tmp_path / "elsewhere.tsv")
        server.invite()
        (tmp_path / "elsewhere.tsv").rename(tmp_path / "graph.tsv")
        server.invite(rounds=500)
        server.settle()
        server.fit(1)
        server.fit(1, rows=3)
        server.ask(Finish(4, {"entities": np.zeros((3, WIDTH), np.float32)}))
        member.answer(b"nonsense")
    everything = b"\n".join(sent)
    for secret in (
        b"person",
        b"knows",
        str(tmp_path).encode(),
        b".tsv",
        server.key.secret,
        server.key.secret.hex().encode(),
    ):
        assert secret not in everything


def test_site_files_that_do_not_fit_are_not_told(tmp_path: Path) -> None:
    """An error about the site's own options may hold its paths."""
    privacy = {"defence": "dp-flames", "epsilon": 8, "public-graph": str(tmp_path / "graph.tsv")}
    site = settings(tmp_path, privacy=privacy)
    with Member(site) as member:
        reply = Server(member, key_of(site)).invite()
    assert isinstance(reply, Failure)
    assert str(tmp_path) not in reply.reason


def test_an_answer_that_cannot_be_written_is_an_answer_too(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.settle()
    honest = Client.handle

    def strange(self: Client, request: Any) -> Any:
        reply = honest(self, request)
        return replace(reply, triples=float("nan")) if isinstance(reply, Upload) else reply

    monkeypatch.setattr(Client, "handle", strange)
    assert isinstance(server.fit(1), Failure)


def test_a_full_disk_does_not_silence_a_site(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the note about it can be written. Without an answer the server would wait for the whole round."""
    server.settle()

    def full(*_: object) -> None:
        raise StorageError("status.json: could not be written (No space left on device)")

    monkeypatch.setattr("fedkge.deploy.status.write_atomically", full)
    assert "StorageError" in server.fit(1).reason
    assert isinstance(server.ask(Finish(1, {"entities": np.zeros((20, WIDTH), np.float32)})), Failure)
    server.member.answered()


def test_options_of_the_site_that_were_changed_are_not_told(tmp_path: Path) -> None:
    """The server learns neither which budget the site had nor where its graph was."""
    site = settings(tmp_path)
    with Member(site) as member:
        server = Server(member, key_of(site))
        server.settle()
        server.fit(1)
    for change in ({"privacy": {"defence": "dpsgd", "epsilon": 5.25, "noise": 4}}, {"seed": 4711}):
        with Member(settings(tmp_path, **change)) as member:
            reply = Server(member, key_of(site)).invite()
        assert isinstance(reply, Failure)
        assert not any(word in reply.reason for word in ("epsilon", "8.0", "5.25", "seed", "4711", str(tmp_path)))
        assert "site.toml was changed" in str(read_status(site.run)["notes"][-1])


def test_a_plan_with_too_little_noise_leaves_no_promise_behind(tmp_path: Path) -> None:
    """Else a server could spoil a site's run with one proposal that is refused."""
    site = settings(tmp_path, privacy={"defence": "dpsgd", "epsilon": 2}, limits={"rounds": 40, "least-noise": 4})
    with Member(site) as member:
        server = Server(member, key_of(site))
        refused = server.invite(rounds=1, **{"batch-size": 8})
        assert isinstance(refused, Failure)
        assert "this site wants at least 4" in refused.reason
        assert not Ledger.read(site.run / "ledger.jsonl").is_promised(site.name)
        assert isinstance(server.invite(rounds=40, **{"batch-size": 64}), Accept)


def test_an_invitation_that_failed_was_not_accepted(tmp_path: Path) -> None:
    """The graph has changed since the run began: the same invitation is refused as often as it comes."""
    site = settings(tmp_path)
    with Member(site) as member:
        Server(member, key_of(site)).settle()
    with (tmp_path / "graph.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{NAMES[0]}\tlikes\t{NAMES[1]}\n")
    with Member(site) as member:
        server = Server(member, key_of(site))
        assert [type(server.invite()) for _ in range(3)] == [Failure] * 3
        assert isinstance(server.ask(Hello()), Failure)


def test_finish_overwrites_nothing_with_nonsense(server: Server, site: SiteSettings) -> None:
    server.settle()
    server.fit(1)
    for rows in (np.full((20, WIDTH), np.nan, np.float32), np.zeros((30, WIDTH), np.float32)):
        assert isinstance(server.ask(Finish(1, {"entities": rows})), Failure)
    assert not (site.run / "model.safetensors").exists()


def test_the_size_of_the_graph_is_told_with_noise_and_paid_for(server: Server, site: SiteSettings) -> None:
    server.invite()
    told = server.ask(Hello()).triples
    ledger = Ledger.read(site.run / "ledger.jsonl")
    assert ledger.once(site.name)["size"].value == told
    assert [type(charge.event) for charge in ledger.charges(site.name)] == [Size]


def test_a_refusal_that_depends_on_the_size_is_paid_for_and_the_size_is_kept(tmp_path: Path) -> None:
    # far from both noises, wherever the noisy size falls
    site = settings(tmp_path, privacy={"defence": "dpsgd", "epsilon": 2}, limits={"rounds": 40, "least-noise": 4})
    sizes = set()
    for rounds in (1, 2, 40):
        with Member(site) as member:
            server = Server(member, key_of(site))
            reply = server.invite(rounds=rounds, **{"batch-size": 8 if rounds < 40 else 64})
            assert isinstance(reply, Accept if rounds == 40 else Failure)
        ledger = Ledger.read(site.run / "ledger.jsonl")
        assert ledger.is_promised(site.name) == (rounds == 40)
        assert [type(charge.event) for charge in ledger.charges(site.name)] == [Size]
        sizes.add(ledger.once(site.name)["size"].value)
    assert len(sizes) == 1
