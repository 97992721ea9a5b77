"""A site that does not keep to the rules: the server says which site it was and why, and goes on where it can."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.base.errors import FedkgeError
from fedkge.deploy.coordinator import Coordinator, handed_out
from fedkge.deploy.federation_file import FederationFile
from fedkge.deploy.keys import create_key
from fedkge.deploy.member import Member
from fedkge.deploy.site_settings import parse_site
from fedkge.deploy.status import read_status
from fedkge.deploy.wire import decode, encode
from fedkge.federation.messages import Accept, Aligned, Failure, Goodbye, Greeting, Sharing, Upload
from fedkge.runs.directory import MODEL
from fedkge.store.durable_files import load_tensors
from tests.base.test_private_files import open_to_others
from tests.deploy.every_message import joined, parts

SITES = ("a-mallory", "north", "south")
"""The hostile one comes first, where a server that trusts its first client would believe it."""
WIDTH, ROUNDS = 8, 3
TERMS = {"rounds": ROUNDS, "dimension": WIDTH, "batch-size": 64, "local-epochs": 1, "seed": 7}
Change = Callable[[Any], Any]


class Wire:
    """Members with bytes between them and the server, one of them under somebody else's control."""

    def __init__(self, members: dict[str, Member]) -> None:
        self._members = members
        self.change: Change = lambda reply: reply
        self.raw: Callable[[bytes], bytes] = lambda content: content

    def clients(self) -> tuple[str, ...]:
        return tuple(sorted(self._members))

    def exchange(self, requests: dict[str, Any], *, timeout_seconds: float = 60) -> dict[str, Any]:  # noqa: ARG002
        return {name: self._ask(name, request) for name, request in sorted(requests.items())}

    def _ask(self, name: str, request: Any) -> Any:
        content = self._members[name].answer(encode(request))
        if name != SITES[0]:
            return decode(content)
        try:
            return decode(self.raw(encode(self.change(decode(content)))))
        except FedkgeError as error:
            return Failure(name, f"sent a message that is refused: {error}")


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    yield from wired(tmp_path)


def wired(tmp_path: Path, **more: Any) -> Iterator[Wire]:
    create_key(tmp_path / "consortium.key")
    with ExitStack() as stack:
        members = {}
        for number, name in enumerate(SITES):
            own = [f"e{(number * 5 + i) % 40}\tr\te{(number * 5 + 3 * i + 1) % 40}\n" for i in range(60)]
            (tmp_path / f"{name}.tsv").write_text("".join(own), encoding="utf-8")
            values: dict[str, Any] = {
                "name": name,
                "federation": "study",
                "graph": f"{name}.tsv",
                "entities": "from-triples",
                "run": f"run-{name}",
                "seed": 7,
            }
            values |= {"exponent": f"{name}.exponent", "threads": 1, "privacy": {"defence": "none"}, **more}
            site = parse_site(values, folder=tmp_path)
            members[name] = stack.enter_context(Member(site))
        yield Wire(members)


def settings(folder: Path) -> FederationFile:
    return FederationFile(name="study", sites=SITES, run=folder / "server", training=TERMS)


def run(wire: Wire, folder: Path) -> str:
    return Coordinator(wire, settings(folder)).run()  # type: ignore[arg-type]


def notes(folder: Path) -> str:
    return " ".join(map(str, read_status(folder / "server").get("notes", [])))


def greeting(change: Callable[[Greeting], Greeting]) -> Change:
    return lambda reply: change(reply) if isinstance(reply, Greeting) else reply


def upload(change: Callable[[Upload], Any]) -> Change:
    return lambda reply: change(reply) if isinstance(reply, Upload) else reply


def test_the_honest_three_finish(wire: Wire, tmp_path: Path) -> None:
    assert run(wire, tmp_path) == "finished"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: replace(said, widths={"entities": 10**9}),
        lambda said: replace(said, widths={"entities": 0}),
        lambda said: replace(said, widths={}),
        lambda said: replace(said, names={"entities": ("patient 4711",)}, tags={}),
        lambda said: replace(said, names={"entities": tuple(reversed(said.names["entities"]))}),
        lambda said: replace(said, names={"entities": said.names["entities"][:1] * 2}, tags={}),
        lambda said: replace(said, names={"relations": said.names["entities"]}, tags={}),
        lambda said: replace(said, names={}, tags={}),
        lambda said: replace(said, tags={}),
        lambda said: replace(said, tags={"entities": said.tags["entities"][:-1]}),
        lambda said: replace(said, tags={"entities": said.tags["entities"][:, :3]}),
    ],
    ids=[
        "wide",
        "flat",
        "no width",
        "names",
        "order",
        "twice",
        "relations",
        "none",
        "no tags",
        "few tags",
        "short tags",
    ],
)
def test_a_greeting_that_is_none_stops_the_beginning_and_names_the_site(
    wire: Wire, tmp_path: Path, change: Callable[[Greeting], Greeting]
) -> None:
    wire.change = greeting(change)
    with pytest.raises(FedkgeError) as refused:
        run(wire, tmp_path)
    assert "a-mallory" in f"{refused.value} {notes(tmp_path)}"
    assert "4711" not in f"{refused.value} {notes(tmp_path)}"


def test_another_key_is_seen_before_names_are_compared(wire: Wire, tmp_path: Path) -> None:
    wire.change = lambda reply: replace(reply, fingerprint="0" * 16) if isinstance(reply, Accept) else reply
    with pytest.raises(FedkgeError, match="a-mallory"):
        run(wire, tmp_path)
    assert "its key or its name rules differ" in notes(tmp_path)


def spoiled(rows: Callable[[np.ndarray], np.ndarray]) -> Change:
    return upload(lambda sent: replace(sent, rows={"entities": rows(sent.rows["entities"].copy())}))


@pytest.mark.parametrize(
    "change",
    [
        spoiled(lambda rows: rows * np.float32(np.nan)),
        spoiled(lambda rows: rows + np.float32(1e30)),
        spoiled(lambda rows: rows[:-1]),
        spoiled(lambda rows: rows[:, :-1]),
        spoiled(lambda rows: rows[:0]),
        upload(lambda sent: replace(sent, round=sent.round + 1)),
        upload(lambda sent: replace(sent, round=0)),
        upload(lambda sent: replace(sent, triples=10**12)),
        upload(lambda sent: replace(sent, rows={})),
        upload(lambda sent: replace(sent, rows={**sent.rows, "relations": sent.rows["entities"]})),
        upload(lambda _: Accept("0.1.0")),
        upload(lambda _: Failure("north", "it was north!", True)),
    ],
    ids=["nan", "huge", "rows", "width", "empty", "later", "earlier", "weight", "nothing", "more", "other", "blame"],
)
def test_a_bad_upload_is_left_out_and_the_rest_goes_on(wire: Wire, tmp_path: Path, change: Change) -> None:
    wire.change = change
    assert run(wire, tmp_path) == "finished"
    assert "a-mallory was left out" in notes(tmp_path)
    assert "north was left out" not in notes(tmp_path)
    table = load_tensors(tmp_path / "server" / "model.safetensors")[0]["entities"]
    assert np.isfinite(table).all()
    assert np.abs(table).max() < 1000


def test_a_claim_of_many_triples_does_not_take_over_the_weighted_mean(wire: Wire, tmp_path: Path) -> None:
    """The claim is made in the greeting and kept to: no upload gives it away. What alignment saw bounds its weight."""
    far, boast = np.float32(10), 10**12

    def change(reply: Any) -> Any:
        if isinstance(reply, Upload):
            return replace(reply, triples=boast, rows={"entities": np.full_like(reply.rows["entities"], far)})
        return replace(reply, triples=boast) if isinstance(reply, Greeting) else reply

    wire.change = change
    weighted = FederationFile(
        name="study", sites=SITES, run=tmp_path / "server", training={**TERMS, "rounds": 1, "aggregation": "weighted"}
    )
    assert Coordinator(wire, weighted).run() == "finished"  # type: ignore[arg-type]
    assert "a-mallory claims 1,000,000,000,000 triples" in notes(tmp_path)
    table = load_tensors(tmp_path / "server" / "model.safetensors")[0]["entities"]
    assert table.max() < 0.8 * far, "four parts of six at most, the honest rows being about 0"


LYING = {
    "loss beyond float": ({"loss": 10**30}, {}),
    "loss beyond reason": ({"loss": 1e308}, {}),
    "weight": ({"triples": 2**53 - 1}, {}),
    "escapes": ({}, {"entities\x1b[2J": {"dtype": "F32", "shape": [0, 8], "data_offsets": [0, 0]}}),
    "rows of nothing": ({}, {"entities": {"dtype": "F32", "shape": [2**62, 0], "data_offsets": [0, 0]}}),
}


@pytest.mark.parametrize(("header", "layout"), LYING.values(), ids=LYING)
def test_an_upload_that_lies_about_its_numbers_is_left_out(
    wire: Wire, tmp_path: Path, header: dict[str, Any], layout: dict[str, Any]
) -> None:
    """Each of these once ended the federation or stalled its rounds, with nobody named."""

    def lie(sent: bytes) -> bytes:
        if not isinstance(decode(sent), Upload):
            return sent
        said, arrays, data = parts(sent)
        return joined(said | header, layout or arrays, b"" if layout else data)

    wire.raw = lie
    assert run(wire, tmp_path) == "finished"
    assert notes(tmp_path).count("a-mallory was left out") == ROUNDS
    assert notes(tmp_path).isprintable()
    lines = (tmp_path / "server" / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [json.loads(line).get("loss") for line in lines]
    assert all(loss is None or abs(loss) < 1e6 for loss in losses)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 100, b'{"kind": "Upload"}', b"\x08" + b"\x00" * 7])
def test_bytes_that_are_no_message_are_left_out(wire: Wire, tmp_path: Path, content: bytes) -> None:
    uploads = [0]

    def spoil(sent: bytes) -> bytes:
        uploads[0] += isinstance(decode(sent), Upload)
        return content if isinstance(decode(sent), Upload) else sent

    wire.raw = spoil
    assert run(wire, tmp_path) == "finished"
    assert uploads[0] == ROUNDS
    assert "a-mallory was left out" in notes(tmp_path)


def test_a_reason_cannot_forge_a_line_of_the_log(wire: Wire, tmp_path: Path) -> None:
    """An honest end writes control characters out; a message that holds them all the same is refused."""
    wire.change = upload(lambda _: Failure("a-mallory", "\nround 9: everything is fine \x1b[2J"))
    assert run(wire, tmp_path) == "finished"
    assert "\\nround 9" in notes(tmp_path)
    for line in read_status(tmp_path / "server")["notes"]:
        assert line.isprintable()
    content = encode(Failure("a-mallory", "X")).replace(b"X", b"\x1b")
    with pytest.raises(FedkgeError):
        decode(content)


def test_who_says_goodbye_is_gone_and_the_rest_goes_on(wire: Wire, tmp_path: Path) -> None:
    wire.change = upload(lambda _: Goodbye("bored"))
    assert run(wire, tmp_path) == "finished"


def test_owners_cannot_be_claimed_without_a_word_for_them(wire: Wire, tmp_path: Path) -> None:
    """Tags that are not its own: the others see it, whatever the server does."""
    wire.change = greeting(
        lambda said: replace(said, tags={"entities": np.ascontiguousarray(said.tags["entities"][::-1])})
    )
    with pytest.raises(FedkgeError):
        run(wire, tmp_path)
    assert "'a-mallory' owns some of the same rows" in notes(tmp_path)


def test_a_large_answer_of_another_kind_is_not_repeated_in_logs(tmp_path: Path) -> None:
    for wire in wired(tmp_path):
        greeted: list[Greeting] = []

        def change(reply: Any, greeted: list[Greeting] = greeted) -> Any:
            if isinstance(reply, Greeting):
                greeted.append(reply)
            return greeted[0] if isinstance(reply, Sharing) else reply

        wire.change = change
        with pytest.raises(FedkgeError, match="a-mallory"):
            run(wire, tmp_path)
        assert "got Greeting" in notes(tmp_path)
        assert greeted[0].names["entities"][0] not in notes(tmp_path)


class TestJointly:
    @pytest.fixture
    def ring(self, tmp_path: Path) -> Iterator[Wire]:
        pytest.importorskip("nacl")
        yield from wired(tmp_path, alignment="joint")

    def test_the_honest_three_finish_with_the_table_of_the_keyed(self, ring: Wire, tmp_path: Path) -> None:
        assert run(ring, tmp_path) == "finished"
        other = tmp_path / "keyed"
        other.mkdir()
        for wire in wired(other):
            assert run(wire, other) == "finished"
        shapes = [
            load_tensors(path / "server" / "model.safetensors")[0]["entities"].shape for path in (tmp_path, other)
        ]
        assert shapes[0] == shapes[1], "the same rows are shared, under other pseudonyms"
        for site in SITES:
            assert open_to_others(tmp_path / f"run-{site}") == []
        assert open_to_others(tmp_path / "server") == []

    def test_a_site_that_lost_its_pseudonyms_is_left_out_later_and_the_rest_goes_on(
        self, ring: Wire, tmp_path: Path
    ) -> None:
        """Or says so: one site alone does not end a federation that has begun."""
        training = {**TERMS, "rounds": 1}
        begun = FederationFile(name="study", sites=SITES, run=tmp_path / "server", training=training)
        assert Coordinator(ring, begun).run() == "finished"  # type: ignore[arg-type]
        (tmp_path / "server" / MODEL).unlink()
        ring.change = lambda reply: replace(reply, aligned=False) if isinstance(reply, Accept) else reply
        assert Coordinator(ring, begun).run() == "finished"  # type: ignore[arg-type]
        assert "a-mallory does not take part: it has lost the joint pseudonyms" in notes(tmp_path)
        assert handed_out(tmp_path / "server") == set(SITES)

    @pytest.mark.parametrize("part", ["points", "tag", "raised_by", "origin"])
    def test_a_list_that_was_changed_stops_the_ring_and_names_a_site(
        self, ring: Wire, tmp_path: Path, part: str
    ) -> None:
        wrong = {"points": bytes(32), "tag": bytes(32), "raised_by": ("south",), "origin": "south"}

        def change(reply: Any) -> Any:
            return replace(reply, **{part: wrong[part]}) if isinstance(reply, Aligned) and reply.points else reply

        ring.change = change
        with pytest.raises(FedkgeError, match=r"the joint alignment stopped at") as stopped:
            run(ring, tmp_path)
        if part in ("raised_by", "origin"):  # the server sees these itself, the rest only the next site can
            assert "stopped at a-mallory" in str(stopped.value)

    def test_a_site_raises_no_more_names_than_it_wants(self, tmp_path: Path) -> None:
        pytest.importorskip("nacl")
        for wire in wired(tmp_path, alignment="joint", limits={"ring-names": 45}):
            assert run(wire, tmp_path) == "finished"
        narrow = tmp_path / "narrow"
        narrow.mkdir()
        for wire in wired(narrow, alignment="joint", limits={"ring-names": 5}):
            with pytest.raises(FedkgeError, match="the joint alignment stopped"):
                run(wire, narrow)
