"""The report about a noisy copy: how many canaries it was asked about, and which canaries to take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import train
from fedkge.defences import DEFENCES
from fedkge.defences.noisy_copy import NoisyCopy
from fedkge.defences.noisy_copy.noisy_copy import cells_of
from fedkge.experiments.recorded_audit import run_audit
from fedkge.graph.shards import Shards
from fedkge.mechanisms.responses import flip_chance
from fedkge.report import gather
from fedkge.report.document import Document
from fedkge.report.guess_words import guess_words
from fedkge.report.page import render
from fedkge.runs.state_file import saved_release
from tests.experiments.test_audited_release import OPTIONS, SHARDS

ADVICE = "--canary-source likely"


def reported(folder: Path, source: str) -> Document:
    run_audit(train(SHARDS, out=folder, **{**OPTIONS, "canary_source": source}), ["copy"])
    return gather(folder, "for-owner")


@pytest.mark.parametrize(("source", "warned"), [("victim", True), ("likely", False)])
def test_canaries_that_were_not_asked_about_are_counted(tmp_path: Path, source: str, warned: bool) -> None:
    document = reported(tmp_path / "run", source)
    assert any(ADVICE in warning for warning in document.claim.warnings) == warned
    (told,) = [warning for warning in document.audit.warnings if "The copy asked about" in warning]
    assert (ADVICE in told) == warned


def neighbour(shards: Shards) -> Shards:
    """The same names, and the first client holds one triple less."""
    graphs = list(shards.graphs)
    graphs[0] = replace(graphs[0], train=graphs[0].train[1:])
    return replace(shards, graphs=tuple(graphs))


def test_the_report_says_what_a_guess_is_worth_and_what_the_copies_hold(tmp_path: Path) -> None:
    trained = train(SHARDS, out=tmp_path / "run", **OPTIONS)
    document = gather(tmp_path / "run")
    plan = Ledger.read(tmp_path / "run" / "ledger.jsonl").promises["client-0"].facts.mechanism
    guess = document.claim.clients[0].guess
    assert guess is not None
    assert guess.answer == pytest.approx(1 - flip_chance(plan.response_epsilon))
    assert guess.counts_agree == pytest.approx(1 - flip_chance(2 / plan.count_scale))
    assert [line for line in document.claim.guessing if guess_words(guess) in line]
    page = render(document)
    assert all(escape(line) in page for line in document.claim.guessing)
    assert [held.client for held in document.claim.copies] == ["client-0", "client-1"]
    for held, shard in zip(document.claim.copies, trained.shards, strict=True):
        copy = saved_release(tmp_path / "run" / "checkpoints" / f"{held.client}.safetensors", DEFENCES["recommended"])
        assert isinstance(copy, NoisyCopy)
        believed = copy.believed()
        true = np.isin(cells_of(believed, copy.entities), cells_of(shard.train, copy.entities)).sum()
        assert held.believed == len(believed)
        assert held.true == pytest.approx(true, abs=0.2 * max(held.believed, 10))
        assert escape(held.sentence) in page


def test_what_a_copy_holds_is_told_by_releases_and_public_numbers_alone(tmp_path: Path, monkeypatch) -> None:
    """Neighbours with the same copy and the same public number have the same estimate, whatever their triples are."""
    options = {**OPTIONS, "canaries": 0, "public_triples": 1000}
    draw, drawn = NoisyCopy.draw, []
    monkeypatch.setattr(NoisyCopy, "draw", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    train(SHARDS, out=tmp_path / "one", **options)
    again = iter(drawn[:])
    monkeypatch.setattr(NoisyCopy, "draw", lambda *_: next(again))
    train(neighbour(SHARDS), out=tmp_path / "two", **options)
    one, two = (gather(tmp_path / name).claim for name in ("one", "two"))
    assert one.copies
    assert one.copies == two.copies
    assert one.clients == two.clients
