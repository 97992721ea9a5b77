"""The report about a noisy copy: how many canaries it was asked about, and which canaries to take."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedkge.audit import run_audit
from fedkge.report import gather
from fedkge.report.document import Document
from fedkge.runs import train
from tests.audit.test_white_box_copy import OPTIONS, SHARDS

ADVICE = "--canary-source likely"


def reported(folder: Path, source: str) -> Document:
    run_audit(train(SHARDS, out=folder, **{**OPTIONS, "canary_source": source}), ["copy"])
    return gather(folder, "for-owner")


@pytest.mark.parametrize(("source", "warned"), [("victim", True), ("likely", False)])
def test_canaries_that_were_not_asked_about_are_counted(tmp_path: Path, source: str, warned: bool) -> None:
    document = reported(tmp_path / "run", source)
    assert any(ADVICE in warning for warning in document.claim.warnings) == warned
    (told,) = [warning for warning in document.audit.warnings if "was asked about" in warning]
    assert (ADVICE in told) == warned
