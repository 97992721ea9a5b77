"""The engine over any carrier: what is late, comes twice, is broken or never comes."""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fedkge.deploy import nvflare_engine
from fedkge.deploy.keys import Key
from fedkge.deploy.liveness import Liveness
from fedkge.deploy.nvflare_engine import Heard, NVFlareEngine, Stopped
from fedkge.deploy.signatures import Address, Opened, Signer, Verifier, public_key
from fedkge.deploy.wire import decode, encode
from fedkge.federation.messages import Failure, Fit, Goodbye, Hello, Sharing, Upload

Behaviour = Callable[["Carrier", str, str, bytes], Any]


class Carrier:
    """Sites that behave as told: each gets (carrier, site, token, content) and may call `engine.receive`."""

    def __init__(self, behaviours: dict[str, Behaviour]) -> None:
        self.behaviours = behaviours
        self.lost: set[str] = set()
        self.over = False
        self.verdicts: list[str] = []
        self.key = Key.fresh()
        self.signer = Signer(self.key, "study", "job", itertools.count(1).__next__)
        self.opened: list[int] = []
        self.forget: set[int] = set()
        self.engine = NVFlareEngine(self, self.signer, largest=10_000)

    def names(self) -> Sequence[str]:
        return sorted(set(self.behaviours) - self.lost)

    def deliver(self, site: str, seal: bytes, content: bytes, timeout_seconds: float) -> bool:  # noqa: ARG002
        opened = Verifier(public_key(self.key), Address("study", site, "job")).open(seal, content)
        assert isinstance(opened, Opened)
        self.opened.append(opened.number)
        return self.behaviours[site](self, site, opened.token, content) is not False

    def ping(self, site: str, number: int) -> Heard:
        if site in ("dead", "dies"):
            return "silent"
        return "known" if number in self.opened and number not in self.forget else "unknown"

    def lose(self, site: str) -> None:
        self.lost.add(site)

    def stopped(self) -> bool:
        return self.over

    def answer(self, number: Any, content: Any) -> None:
        self.verdicts.append(self.engine.receive(number, content))


def honest(carrier: Carrier, site: str, number: str, content: bytes) -> None:
    carrier.answer(number, encode(Sharing({"entities": len(content) and 1})))


def silent(carrier: Carrier, site: str, number: str, content: bytes) -> None:
    return None


def unreachable(carrier: Carrier, site: str, number: str, content: bytes) -> bool:
    return False


def says(content: Any) -> Behaviour:
    return lambda carrier, _site, number, _content: carrier.answer(number, content)


def ask(carrier: Carrier, seconds: float = 30.0) -> dict[str, Any]:
    requests = dict.fromkeys(carrier.names(), Hello())
    return dict(carrier.engine.exchange(requests, timeout_seconds=seconds))


def test_everybody_answers() -> None:
    carrier = Carrier({"a": honest, "b": honest})
    assert ask(carrier) == {"a": Sharing({"entities": 1}), "b": Sharing({"entities": 1})}
    assert carrier.engine.clients() == ("a", "b")


def test_who_does_not_answer_in_time_is_a_failure_and_the_others_are_not() -> None:
    replies = ask(Carrier({"a": honest, "slow": silent}), seconds=0.5)
    assert replies["a"] == Sharing({"entities": 1})
    assert replies["slow"] == Failure("slow", "no answer within 0.5 seconds")


def test_a_late_answer_and_one_that_comes_twice_are_dropped() -> None:
    numbers: list[str] = []

    def remembers(carrier: Carrier, site: str, number: str, content: bytes) -> None:
        numbers.append(number)

    carrier = Carrier({"slow": remembers})
    assert isinstance(ask(carrier, seconds=0.2)["slow"], Failure)
    carrier.answer(numbers[0], encode(Goodbye("late")))
    carrier.behaviours["slow"] = honest
    assert ask(carrier)["slow"] == Sharing({"entities": 1})
    assert carrier.verdicts == ["nobody waits for this answer", "taken"]


def test_one_site_cannot_answer_for_another() -> None:
    def forges(carrier: Carrier, site: str, number: str, content: bytes) -> None:
        for guess in ("", "0" * 32, None, 7, ["x"]):
            carrier.answer(guess, encode(Goodbye("I am a")))
        carrier.answer(number, encode(Failure("a", "a is gone", True)))

    carrier = Carrier({"a": honest, "b": forges})
    replies = ask(carrier)
    assert replies["a"] == Sharing({"entities": 1})
    assert replies["b"] == Failure("b", "a is gone", True)
    assert carrier.verdicts.count("nobody waits for this answer") == 5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"garbage", "expected a header"),
        ("text", "expected bytes, got str"),
        (None, "expected bytes, got NoneType"),
        (encode(Fit(1, {"entities": np.zeros((1, 1), np.float32)})), "expected a reply, got Fit"),
        (encode(Upload(1, {"entities": np.zeros((100, 100), np.float32)}, 1, None)), "at most 10,000 bytes"),
    ],
)
def test_a_broken_answer_is_refused_by_name_and_the_federation_goes_on(content: Any, reason: str) -> None:
    carrier = Carrier({"a": honest, "bad": says(content)})
    refused: list[tuple[str, str]] = []
    carrier.engine.refused = lambda site, why: refused.append((site, why))
    replies = ask(carrier)
    assert replies["a"] == Sharing({"entities": 1})
    assert isinstance(replies["bad"], Failure)
    assert reason in replies["bad"].reason
    assert [site for site, _ in refused] == ["bad"]
    carrier.behaviours["bad"] = honest
    assert ask(carrier)["bad"] == Sharing({"entities": 1})


def test_a_request_is_delivered_again_until_the_site_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvflare_engine, "RETRY_SECONDS", 0.01)
    tries: list[str] = []

    def third_time(carrier: Carrier, site: str, number: str, content: bytes) -> bool:
        tries.append(number)
        if len(tries) < 3:
            return False
        honest(carrier, site, number, content)
        return True

    assert ask(Carrier({"a": third_time}))["a"] == Sharing({"entities": 1})
    assert len(tries) == 3
    assert len(set(tries)) == 1


@pytest.mark.parametrize(("name", "behaviour"), [("dead", unreachable), ("dies", silent)])
def test_a_site_that_is_gone_is_lost_long_before_its_time_out(
    monkeypatch: pytest.MonkeyPatch, name: str, behaviour: Behaviour
) -> None:
    for constant in ("RETRY", "CHECK"):
        monkeypatch.setattr(nvflare_engine, f"{constant}_SECONDS", 0.01)
    carrier = Carrier({"a": honest, name: behaviour})
    carrier.engine = NVFlareEngine(carrier, carrier.signer, liveness=Liveness(0.1))
    replies = ask(carrier, seconds=3600.0)
    assert replies[name] == Failure(name, "it cannot be reached any more")
    assert carrier.engine.clients() == ("a",)


def test_a_request_that_a_site_acknowledged_and_lost_is_signed_anew_and_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An invitation that came before the site could act on it; the site says at the next ping that it has none."""
    monkeypatch.setattr(nvflare_engine, "RETRY_SECONDS", 0.01)

    def second_time(carrier: Carrier, site: str, token: str, content: bytes) -> bool:
        if len(carrier.opened) == 1:
            carrier.forget.add(carrier.opened[0])
        else:
            honest(carrier, site, token, content)
        return True

    carrier = Carrier({"a": second_time})
    carrier.engine = NVFlareEngine(carrier, carrier.signer, liveness=Liveness(0.4))
    assert ask(carrier, seconds=3600.0)["a"] == Sharing({"entities": 1})
    assert carrier.opened == [1, 2], "under a new number, which the site takes"


def test_a_site_that_has_the_request_and_works_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvflare_engine, "RETRY_SECONDS", 0.01)
    carrier = Carrier({"a": silent})
    carrier.engine = NVFlareEngine(carrier, carrier.signer, liveness=Liveness(0.1))
    assert isinstance(ask(carrier, seconds=1.0)["a"], Failure)
    assert carrier.opened == [1]


def test_a_receipt_that_does_not_come_is_not_waited_for_as_long_as_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVFlare loses a message to a process that does not listen yet, and says nothing: a small one is sent again."""
    monkeypatch.setattr(nvflare_engine, "RETRY_SECONDS", 0.01)
    waits: list[float] = []

    class Slow(Carrier):
        def deliver(self, site: str, seal: bytes, content: bytes, timeout_seconds: float) -> bool:
            waits.append(timeout_seconds)
            return len(waits) > 1 and super().deliver(site, seal, content, timeout_seconds)

    assert ask(Slow({"a": honest}), seconds=3600.0)["a"] == Sharing({"entities": 1})
    assert max(waits) < 20.0


@pytest.mark.parametrize("part", ["deliver", "ping"])
def test_a_carrier_that_breaks_is_no_silence(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Nobody would deliver the request or watch the site any more, and the round would wait for its whole time."""
    carrier = Carrier({"a": silent, "b": honest})
    carrier.engine = NVFlareEngine(carrier, carrier.signer, liveness=Liveness(0.1))
    sound = getattr(carrier, part)

    def breaks(site: str, *more: Any) -> Any:
        if site == "a":
            raise RuntimeError("no such channel")
        return sound(site, *more)

    monkeypatch.setattr(carrier, part, breaks)
    replies = ask(carrier, seconds=3600.0)
    assert replies["a"] == Failure("a", "not asked: RuntimeError at the server")
    assert replies["b"] == Sharing({"entities": 1})


def test_a_job_that_is_stopped_waits_for_nobody() -> None:
    carrier = Carrier({"slow": silent})
    threading.Timer(0.2, lambda: setattr(carrier, "over", True)).start()
    with pytest.raises(Stopped):
        ask(carrier, seconds=3600.0)


def test_rows_travel_as_the_engine_is_told() -> None:
    seen: list[int] = []

    def measures(carrier: Carrier, site: str, number: str, content: bytes) -> None:
        seen.append(len(content))
        assert isinstance(decode(content), Fit)
        honest(carrier, site, number, content)

    rows = np.zeros((100, 100), np.float32)
    for numbers in ("float32", "float16"):
        carrier = Carrier({"a": measures})
        carrier.engine = NVFlareEngine(carrier, carrier.signer, numbers)  # type: ignore[arg-type]
        carrier.engine.exchange({"a": Fit(1, {"entities": rows})}, timeout_seconds=30)
    assert seen[1] < 0.55 * seen[0]
