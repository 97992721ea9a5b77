"""Noisy copies with a planted bug, audited end to end: the bound contradicts the claim; that of a correct one does not.

The victim has a dense random graph (10,000 triples in 72,000 cells), so that its copy is asked about nearly every cell,
and 4,000 likely canaries in some 2,400 counts, many with one or two of them. It claims epsilon 2. The auditor sees the
whole copy and has one look of 600 guesses, at 99 % confidence: the canaries about which answer and counts agree.
A small part of epsilon goes into counts where the bug is in the answers, half of it where it is in the counts.

What was found over 20 seeds, and in how many runs the claim was contradicted:

                                      counts get .15 of epsilon    counts get .5
correct                               1.56 to 1.97,  0 of 20       1.47 to 1.89,  0 of 20
answers that lie as for 2 epsilon     2.61 to 3.54, 20 of 20
a cell asked thrice, by majority      2.25 to 2.78, 20 of 20
counts with half of their noise                                    2.18 to 2.75, 20 of 20
counts without noise                                               3.72 to 4.55, 20 of 20 (at most 4.55 can be shown)

This auditor loses next to nothing of what the proof allows, so the bound of a correct copy lies close to its claim: at
95 % confidence and .35 of epsilon for counts 2 of 20 correct ones were contradicted, where 1 is to be expected.

A correct federation is contradicted by chance in at most 1 % of audits (`test_audit_honesty.py`). Seeds are fixed here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fedkge.api.training import start
from fedkge.audit import audit
from fedkge.defences import parse
from fedkge.defences.noisy_copy import noisy_copy
from fedkge.experiments.claim import claim_of
from fedkge.experiments.white_box import canaries_of, white_box_scores
from fedkge.graph import Graph
from fedkge.mechanisms import counts, responses
from fedkge.mechanisms.noise import NoiseSource

COPY = "recommended"
"""The defence by copy."""
ENTITIES, RELATIONS = 60, 20
OPTIONS: dict[str, Any] = {
    "data": "dense",
    "defence": COPY,
    "epsilon": 2.0,
    "rounds": 1,
    "local-epochs": 1,
    "dimension": 8,
    "negatives": 4,
    "batch-size": 1024,
    "evaluate-every": 0,
    "threads": 1,
    "canaries": 4000,
    "canary-coins": "seeded",
    "canary-source": "likely",
}
GUESSES, CONFIDENCE = 600, 0.99
ANSWERS, COUNTS = 0.15, 0.5
"""Parts of epsilon for counts: in federations whose answers are in question, or whose counts are."""

Plant = Callable[[pytest.MonkeyPatch], None]
Cells = NDArray[np.int64]


def dense(name: str, triples: int) -> Graph:
    """Uniform random triples, so many that any other is likely too."""
    cells = np.random.default_rng(1).choice(RELATIONS * ENTITIES**2, triples, replace=False)
    rows = noisy_copy.triples_of(cells, ENTITIES).tolist()
    return Graph.from_names(name, [(f"e{head}", f"r{relation}", f"e{tail}") for head, relation, tail in rows])


SHARDS = dense("client-0", 10_000), dense("client-1", 200)


def correct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bug."""


def half_the_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers lie as rarely as for twice their epsilon; what is believed and charged stays as it is."""
    true = responses.flip_chance
    monkeypatch.setattr(responses, "flip_chance", lambda epsilon: true(2 * epsilon))


def asked_thrice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell is asked three times, and the majority answers."""
    true = responses.respond

    def respond(asked: Cells, held: Cells, epsilon: float, source: NoiseSource) -> Cells:
        votes = np.concatenate([true(asked, held, epsilon, source) for _ in range(3)])
        cells, number = np.unique(votes, return_counts=True)
        return cells[number >= 2]

    monkeypatch.setattr(noisy_copy, "respond", respond)


def half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of held triples have half of their noise."""
    true = counts.two_sided
    monkeypatch.setattr(counts, "two_sided", lambda size, scale, source: true(size, scale / 2, source))


def raw_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of held triples have no noise."""
    monkeypatch.setattr(counts, "two_sided", lambda size, scale, source: np.zeros(size, np.int64))  # noqa: ARG005


BUGS = [(half_the_lies, ANSWERS), (asked_thrice, ANSWERS), (half_the_noise, COUNTS), (raw_counts, COUNTS)]


def contradictions(folder: Path, plant: Plant, share: float, seeds: int) -> int:
    """In how many federations with the bug an auditor who knows nothing of it finds more than the claim."""
    found = 0
    for seed in range(seeds):
        shares = {"count-share": share, "copy-share": 1 - share}
        options = parse({**OPTIONS, **shares, "seed": seed, "noise-seed": 100 + seed})
        with pytest.MonkeyPatch.context() as monkeypatch:
            plant(monkeypatch)
            run = start(options, SHARDS, folder / f"{plant.__name__}-{seed}")
        assert run.directory is not None
        canaries, claim = canaries_of(run), claim_of(run.directory, "client-0")
        assert claim is not None
        assert 1.99 < claim.epsilon <= 2  # the bug does not show in the ledger
        scores = {"copy": white_box_scores(run, canaries)}
        result = audit(scores, canaries.members, claim.delta, [GUESSES], CONFIDENCE)
        found += result.bound > claim.epsilon
    return found


@pytest.mark.parametrize("share", [ANSWERS, COUNTS])
def test_a_correct_copy_is_not_contradicted(share: float, tmp_path: Path) -> None:
    assert contradictions(tmp_path, correct, share, 3) == 0


@pytest.mark.parametrize(("bug", "share"), BUGS)
def test_bugs_are_caught(bug: Plant, share: float, tmp_path: Path) -> None:
    assert contradictions(tmp_path, bug, share, 1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("share", [ANSWERS, COUNTS])
def test_a_correct_copy_is_hardly_ever_contradicted(share: float, tmp_path: Path) -> None:
    """At a rate of 1 %, two or more of twenty would come in 2 % of such tests; these seeds are fixed."""
    assert contradictions(tmp_path, correct, share, 20) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "share"), BUGS)
def test_bugs_are_caught_again_and_again(bug: Plant, share: float, tmp_path: Path) -> None:
    assert contradictions(tmp_path, bug, share, 10) >= 9
