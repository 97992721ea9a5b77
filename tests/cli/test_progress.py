"""Progress: a bar in a terminal, lines elsewhere, JSON for programs."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from fedkge.cli import progress
from fedkge.cli.progress import Bar, JsonLines, Log, Narrator, Pace, narrator
from fedkge.federation.observer import Outlook

OUTLOOK = Outlook(1, 4, 1000, ("client-0", "client-1"), "TransE, 2 client(s)")


def facts(number: int, refused: dict[str, str] | None = None) -> dict[str, Any]:
    return {"round": number, "loss": 0.5, "seconds": 1.0, "refused": refused or {}, "bytes_up": {}, "bytes_down": {}}


def play(told: Narrator) -> str:
    with told:
        told.begin(OUTLOOK)
        told.advance(1000)
        told.round_done(facts(1, {"client-1": "not a finite number"}))
        told.evaluated({"round": 1, "both.realistic.mrr": 0.25})
        told.advance(1000)
        told.round_done(facts(2))
        told.end({"round": 2})
    file = told.console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_log_has_plain_lines() -> None:
    text = play(Log(Console(file=io.StringIO(), highlight=False, width=200)))
    lines = text.splitlines()
    assert lines[0] == "TransE, 2 clients: rounds 1 to 4"
    assert lines[1] == "round 1: client-1 was left out: not a finite number"
    assert lines[2].startswith("round 1/4, ")
    assert lines[2].endswith("loss 0.500, MRR 0.250")
    assert len(lines) == 3
    assert "\x1b" not in text


def test_log_speaks_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY_SECONDS", 0.0)
    assert "round 2/4" in play(Log(Console(file=io.StringIO(), highlight=False, width=200)))


def test_bar_shows_round_rate_loss_and_mrr_and_leaves_nothing_but_notes() -> None:
    text = play(Bar(Console(file=io.StringIO(), highlight=False, width=200, force_terminal=True)))
    assert "round 3/4" in text
    assert "triples/s" in text
    assert "MRR 0.250" in text
    assert "client-1 was left out" in text
    assert text.rstrip().endswith("\x1b[2K")


def test_bar_says_that_it_ranks_after_the_last_round() -> None:
    told = Bar(Console(file=io.StringIO(), highlight=False, width=200, force_terminal=True))
    with told:
        told.begin(Outlook(4, 4, 10, ("client-0",), "RotatE, 1 client(s)"))
        told.round_done(facts(4))
    assert isinstance(told.console.file, io.StringIO)
    assert "RotatE: ranking" in told.console.file.getvalue()


def test_a_resumed_run_counts_only_what_is_left() -> None:
    told = Log(Console(file=io.StringIO()))
    told.begin(Outlook(4, 4, 10, ("client-0",), "TransE, 1 client(s)"))
    assert told.pace.total == 10
    told.begin(Outlook(5, 4, 10, ("client-0",), "TransE, 1 client(s)"))
    assert told.pace.total == 0


def test_pace_knows_nothing_before_the_first_triple() -> None:
    pace = Pace(10)
    assert pace.rate(5.0) == 0.0
    assert pace.seconds_left(5.0) is None


def test_json_lines_are_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    told = JsonLines()
    told.begin(OUTLOOK)
    told.evaluated({"round": 1, "name": "Zoë"})
    told.evaluated({"round": 2})
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"round": 1, "name": "Zoë"},
        {"round": 2},
    ]


def test_narrator_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(narrator(), Log)
    monkeypatch.setattr(progress, "stderr", lambda: Console(file=io.StringIO(), force_terminal=True))
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(narrator(), Bar)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(narrator(), Log)
