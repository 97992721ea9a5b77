"""The auditor's own score of a noisy copy: what somebody who sees all that was released can tell about a canary.

A copy releases noisy counts and answers, and everything else follows from them. The auditor sees both, and knows
everything but the coins. About the coin of a canary

- its answer says plus or minus epsilon of the answers (log-likelihood ratio), and nothing if it was not asked;
- each of its two noisy counts, less the known triples, is a sum of coins plus geometric noise. What it says about one
  coin follows from what the rest says about the others, in a pass forwards and one backwards over the sum.

With one canary in each count the sum of the three is the whole log-likelihood ratio, which no other score beats. With
several, what heads and tails say is told to and fro a few times (belief propagation): nearly that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedkge.base.errors import RunError
from fedkge.defences import chosen_defence
from fedkge.defences.counts.denoising import log_below, log_likelihood
from fedkge.defences.counts.released import profile_cells
from fedkge.defences.noisy_copy import NoisyCopy
from fedkge.defences.noisy_copy.expectation import Numbers
from fedkge.defences.noisy_copy.noisy_copy import cells_of
from fedkge.defences.noisy_copy.questions import Questions
from fedkge.experiments.recorded_views import shard_of
from fedkge.experiments.targets import Targets
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.runs.run import Run, RunDirectory
from fedkge.runs.state_file import saved_release

COPY = "copy"
"""The name of this score among the attacks of an audit."""
PASSES = 3
"""So often heads and tails tell each other what they say."""
LEAST = 1e-300
"""No chance is counted as less."""

Bits = NDArray[np.bool_]


def _checkpoint(run: Run) -> Path | None:
    path = (
        RunDirectory(run.directory).checkpoints / f"{run.configuration.experiment.victim}.safetensors"
        if run.directory
        else None
    )
    return path if path and path.exists() else None


def has_copy(run: Run) -> bool:
    """Whether the victim trains on a copy that an auditor can look at."""
    return bool(chosen_defence(run.configuration).auditing.scores) and _checkpoint(run) is not None


def copy_of(run: Run) -> NoisyCopy:
    """The victim's copy, as its checkpoint keeps it."""
    path = _checkpoint(run)
    if path is None:
        raise RunError(
            f"expected the checkpoint of {run.configuration.experiment.victim} in a run directory, where its copy "
            f"is: got none; "
            "audit where it was trained, or name attacks that do not read the copy"
        )
    found = saved_release(path, chosen_defence(run.configuration))
    if not isinstance(found, NoisyCopy) or found.questions is None:
        raise RunError(f"{path}: expected a noisy copy with its questions, got none; train again, then audit")
    return found


def in_victims_numbers(run: Run, canaries: Targets) -> Triples:
    """All canaries, in the victim's own numbers."""
    victim = run.configuration.experiment.victim
    places = []
    for column, ids in ((HEAD, "own"), (RELATION, "relation_ids"), (TAIL, "own")):
        theirs = run.tensors[f"{ids}/{victim}"]
        order = np.argsort(theirs)
        places.append(order[np.searchsorted(theirs[order], canaries.everything[:, column])])
    return np.ascontiguousarray(np.column_stack(places), dtype=np.int32)


def auditors_triples(run: Run, canaries: Targets) -> tuple[Triples, Triples]:
    """In the victim's own numbers: its triples without any canary, and all canaries. No coin shows in them, and
    real triples that are canaries (design R) are not among its triples either."""
    shard, candidates = shard_of(run, run.configuration.experiment.victim), in_victims_numbers(run, canaries)
    train, size = np.unique(shard.train, axis=0), len(shard.entities)
    return np.ascontiguousarray(train[~np.isin(cells_of(train, size), cells_of(candidates, size))]), candidates


def asked_canaries(copy: NoisyCopy, candidates: Triples) -> Bits:
    """Which of these triples the copy was asked about."""
    return _questions(copy).among(cells_of(candidates, copy.entities))


def copy_scores(copy: NoisyCopy, known: Triples, candidates: Triples) -> Numbers:
    """For each candidate how much likelier the copy is with it than without (log), all `known` triples being there.

    >>> from fedkge.defences.noisy_copy import CopyPlan
    >>> from fedkge.mechanisms.noise import NoiseSource
    >>> held = np.array([[0, 0, 2], [1, 0, 2], [3, 0, 2]], np.int32)
    >>> copy = NoisyCopy.draw(held, 4, 1, CopyPlan(profile_scale=0.2, epsilon=4.0), NoiseSource.research(1))
    >>> copy_scores(copy, held[:2], np.array([[3, 0, 2], [0, 0, 1]], np.int32)).round(1).tolist()
    [14.0, -10.0]
    """
    answers = _answers(copy, candidates)
    cells = profile_cells(candidates.astype(np.int64), copy.entities, copy.relations)
    others = profile_cells(known.astype(np.int64), copy.entities, copy.relations)
    counts = _questions(copy).counts
    as_tails, as_heads = np.zeros(len(candidates)), np.zeros(len(candidates))
    for _ in range(PASSES):
        as_tails = _counted(counts, others[:, 0], cells[:, 0], answers + as_heads)
        as_heads = _counted(counts, others[:, 1], cells[:, 1], answers + as_tails)
    return answers + as_tails + as_heads


def _questions(copy: NoisyCopy) -> Questions:
    if copy.questions is None:
        raise RunError("expected a noisy copy with its questions, got the part that belongs into a model")
    return copy.questions


def _answers(copy: NoisyCopy, candidates: Triples) -> Numbers:
    """What the answers say: an answer is turned round with odds of exp(-epsilon)."""
    yes = np.isin(cells_of(candidates, copy.entities), copy.cells)
    return np.where(yes, copy.epsilon, np.where(asked_canaries(copy, candidates), -copy.epsilon, 0.0))


def _counted(counts: NoisyCounts, known: NDArray[np.int64], cells: NDArray[np.int64], odds: Numbers) -> Numbers:
    """What one side's noisy counts say about each candidate, whose cell and odds so far (log) are given."""
    said, order = np.empty(len(cells)), np.argsort(cells, kind="stable")
    seen, base = _looked_up(cells, counts.keys, counts.values), _looked_up(cells, *np.unique(known, return_counts=True))
    for members in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        true = base[members[0]] + np.arange(len(members) + 1.0)
        if seen[members[0]] < counts.threshold:
            likelihood = log_below(counts.threshold, true, counts.scale)
        else:
            likelihood = log_likelihood(seen[members[:1]], true, counts.scale)[0]
        said[members] = told_by_sum(odds[members], likelihood)
    return said


def _looked_up(cells: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]) -> Numbers:
    """The value of each cell, 0 where it is not among the keys; those ascend."""
    if not len(keys):
        return np.zeros(len(cells))
    places = np.minimum(np.searchsorted(keys, cells), len(keys) - 1)
    return np.where(keys[places] == cells, values[places], 0).astype(np.float64)


def told_by_sum(odds: Numbers, likelihood: Numbers) -> Numbers:
    """What is said about each of n coins (log-likelihood ratio), if `likelihood[k]` is that of k heads among them all
    (log), and `odds` are what else is known about each (log).

    >>> told_by_sum(np.array([0.0, 9.0]), np.array([-2.0, 0.0, -2.0])).round(2).tolist()
    [-2.0, 0.0]
    """
    chances, said = expit(odds), np.empty(len(odds))
    later = [np.exp(likelihood - likelihood.max())]  # by heads so far, when all coins after these are averaged out
    for chance in chances[:0:-1]:
        later.append((1 - chance) * later[-1][:-1] + chance * later[-1][1:])
    before = np.ones(1)  # the chance of so many heads among the coins before
    for place, chance in enumerate(chances):
        rest = later[-1 - place]
        said[place] = np.log(max(before @ rest[1:], LEAST)) - np.log(max(before @ rest[:-1], LEAST))
        before = np.convolve(before, (1 - chance, chance))
    return said
