"""Targets at the seam between machines: the decoder, a server that gets answers, a site that gets requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.deploy.every_message import MESSAGES, checked

from fedkge import __version__
from fedkge.base.errors import FedkgeError
from fedkge.defences import parse
from fedkge.deploy.alignment import PSEUDONYM_BYTES
from fedkge.deploy.greetings import Greetings
from fedkge.deploy.joint_alignment_rounds import carry
from fedkge.deploy.keys import Key, create_key
from fedkge.deploy.member import Member
from fedkge.deploy.nvflare_engine import Heard, NVFlareEngine
from fedkge.deploy.policy import proposal
from fedkge.deploy.signatures import SEAL_BYTES, Address, Refusal, Signer, Verifier, public_key
from fedkge.deploy.site_settings import parse_site
from fedkge.deploy.wire import decode, encode
from fedkge.federation.aggregation import WeightedMean
from fedkge.federation.messages import (
    Align,
    Aligned,
    Evaluate,
    Failure,
    Finish,
    Fit,
    Greeting,
    Hello,
    Invite,
    Kept,
    RankingMetrics,
    Request,
    Share,
    Sharing,
    Upload,
)
from fedkge.federation.server import Server, ServerPlan
from fedkge.models.scorer import ModelShape
from fuzz.targets import Judge, Target

WIDTH, ROWS = 4, 6
NAMES = tuple(f"{number:032x}" for number in range(ROWS))
TAGS = np.zeros((ROWS, PSEUDONYM_BYTES), np.uint8)
GREETING = Greeting({"entities": NAMES}, {"entities": WIDTH}, 30, {"entities": TAGS})
TABLE = np.full((ROWS, WIDTH), 0.5, np.float32)
PLAN = ServerPlan(ModelShape(WIDTH, 1.0, 1), seed=1, aggregation=WeightedMean(), minimum_owners=2)


class _Nobody:
    """A carrier without sites, and a server that signs nothing: answers are handed to the engine by the fuzzer."""

    def names(self) -> Sequence[str]:
        return ("a", "b")

    def deliver(self, *_: Any) -> bool:
        return True

    def ping(self, _site: str, _number: int) -> Heard:
        return "known"

    def lose(self, _site: str) -> None: ...

    def seal(self, _site: str, _token: bytes, _content: bytes) -> tuple[int, bytes]:
        return 1, b""

    def stopped(self) -> bool:
        return False


class _Answers:
    """Two clients: `a` answers with the fuzzer's bytes, judged by the real engine; `b` is honest."""

    def __init__(self) -> None:
        self.content = b""
        self._engine = NVFlareEngine(_Nobody(), _Nobody())

    def clients(self) -> Sequence[str]:
        return ("a", "b")

    def exchange(self, requests: Mapping[str, Request], *, timeout_seconds: float = 0) -> dict[str, Any]:  # noqa: ARG002
        return {name: self._judged() if name == "a" else _honest(name, request) for name, request in requests.items()}

    def _judged(self) -> Any:
        return self._engine._judge("a", self.content)


def _honest(name: str, request: Request) -> Any:
    if isinstance(request, Fit):
        return Upload(request.round, {"entities": TABLE}, 30, 0.5)
    if isinstance(request, Share):
        return Sharing({kind: len(places) for kind, places in request.places.items()})
    if isinstance(request, Align):
        mine = request.origin in ("", name)
        return Aligned(
            request.origin or name, () if mine else (*request.raised_by, name), b"", b"", "00" if mine else ""
        )
    return Failure(name, "asked for something else") if isinstance(request, Hello) else RankingMetrics(1, {"mrr": 0.5})


def _server(folder: Path) -> Judge:
    """A round, a greeting, an alignment: one hostile answer never ends more than the site's own part of it."""
    answers, honest = _Answers(), _Answers()
    honest.content = encode(Sharing({"entities": ROWS}))
    both = {"a": GREETING, "b": GREETING}
    server = Server(honest, PLAN, both)
    server._engine = answers  # type: ignore[assignment]

    def judge(content: bytes) -> None:
        answers.content = content
        server.round, server.gone = 0, set()
        server.tables = {"entities": TABLE}
        report = server.run_round()
        assert "b" in report.uploads
        assert report.loss is None or abs(report.loss) <= 1e6
        assert np.isfinite(server.tables["entities"]).all()
        with suppress(FedkgeError):
            carry(answers, ("a", "b"), 1.0)
        with suppress(FedkgeError):
            message = decode(content)
            if isinstance(message, Greeting) and not Greetings(folder / "greetings").check("a", message, WIDTH, False):
                answers.content = encode(Sharing({"entities": 0}))
                Server(answers, PLAN, {"a": message, "b": GREETING})

    return judge


ANSWERS = [
    Upload(1, {"entities": TABLE}, 30, 0.5),
    Upload(1, {"entities": TABLE}, 30, None),
    GREETING,
    replace(GREETING, triples=10**12),
    Sharing({"entities": ROWS}),
    Aligned("a", (), bytes(32), bytes(32)),
    Aligned("b", ("a",), bytes(32), bytes(32)),
    Failure("a", "no"),
    Kept(1),
]

SITE_ROWS = {"entities": np.full((6, 4), 0.1, np.float32)}
TERMS = {"rounds": 3, "dimension": 4, "batch-size": 4, "local-epochs": 1, "negatives": 2}


def _site(folder: Path) -> Judge:
    """A real site: whatever a server sends, the answer is an answer, and no mistake of fedkge's own."""
    (folder / "graph.tsv").write_text("a\tr\tb\nb\tr\tc\nc\ts\td\nd\ts\te\ne\tr\tf\n", encoding="utf-8")
    if not (folder / "consortium.key").exists():
        create_key(folder / "consortium.key")
    values = {"name": "a", "federation": "study", "graph": "graph.tsv", "run": "run", "seed": 7, "threads": 1}
    limits = {"answer-evaluations": True, "tell-loss": True}
    more = {
        "alignment": "keyed",
        "privacy": {"defence": "none"},
        "limits": limits,
        "least-owners": 1,
        "entities": "from-triples",
    }
    member = Member(parse_site({**values, **more}, folder=folder))
    for request in _requests():
        member.answer(encode(request))

    def judge(content: bytes) -> None:
        answer = decode(member.answer(content))
        if isinstance(answer, Failure) and "a mistake in its fedkge" in answer.reason:
            raise AssertionError(answer.reason)

    return judge


def _requests() -> list[Any]:
    return [
        Invite(__version__, "study", proposal(parse(TERMS)), "float32"),
        Hello(),
        Share({"entities": np.arange(6)}),
        Fit(1, SITE_ROWS),
        Evaluate(SITE_ROWS, "train"),
        Finish(1, SITE_ROWS),
        Align(("a", "b"), "", (), b"", b""),
    ]


_WIRE = ("fedkge.deploy.wire", "fedkge.deploy.frames", "fedkge.deploy.headers")
_KEY, _ADDRESS = Key(bytes(range(1, 33))), Address("study", "north", "job")
_SEALED = (
    Signer(_KEY, _ADDRESS.federation, _ADDRESS.job, lambda: 1).seal(_ADDRESS.site, bytes(16), b"train")[1] + b"train"
)


def _inbox(_: Path) -> Judge:
    """A site's check of a seal and a content: nothing but what the server signed is opened."""
    verifier = Verifier(public_key(_KEY), _ADDRESS)

    def judge(content: bytes) -> None:
        opened = verifier.open(content[:SEAL_BYTES], content[SEAL_BYTES:])
        assert isinstance(opened, Refusal) == (content != _SEALED)

    return judge


TARGETS = {
    "requests": Target(_inbox, lambda _: [_SEALED], ("fedkge.deploy.signatures",)),
    "wire": Target(lambda _: checked, lambda _: [encode(message) for message in MESSAGES], _WIRE, message=True),
    "server": Target(
        _server,
        lambda _: [encode(message) for message in ANSWERS],
        (
            *_WIRE,
            "fedkge.federation.server",
            "fedkge.federation.aggregation",
            "fedkge.federation.union",
            "fedkge.deploy.greetings",
            "fedkge.deploy.joint_alignment_rounds",
            "fedkge.deploy.alignment",
        ),
        message=True,
    ),
    "site": Target(
        _site,
        lambda _: [encode(message) for message in _requests()],
        (*_WIRE, "fedkge.deploy.member", "fedkge.federation.client", "fedkge.deploy.policy", "fedkge.deploy.alignment"),
        message=True,
    ),
}
