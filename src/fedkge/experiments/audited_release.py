"""What the victim's defence released, for an auditor who may look at it, and the triples that the auditor knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import RunError
from fedkge.defences import chosen_defence
from fedkge.defences.release import Release
from fedkge.experiments.recorded_views import shard_of
from fedkge.experiments.targets import Targets, triple_keys
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.runs.directory import RunDirectory
from fedkge.runs.run import Run
from fedkge.runs.state_file import saved_release


def _checkpoint(run: Run) -> Path | None:
    path = (
        RunDirectory(run.directory).checkpoints / f"{run.configuration.experiment.victim}.safetensors"
        if run.directory
        else None
    )
    return path if path and path.exists() else None


def has_audited_release(run: Run) -> bool:
    """Whether the victim's defence released something that is scored by itself, and the run directory has it."""
    return bool(chosen_defence(run.configuration).auditing.scores) and _checkpoint(run) is not None


def audited_release(run: Run) -> Release:
    """What the victim released, from its checkpoint."""
    path, victim = _checkpoint(run), run.configuration.experiment.victim
    if path is None:
        raise RunError(
            f"expected the checkpoint of {victim} in the run directory, which holds what it released, got none: audit "
            "where it was trained, or name attacks that do not read it"
        )
    found = saved_release(path, chosen_defence(run.configuration))
    if found is None:
        raise RunError(f"{path}: expected what {victim} released, got nothing; train again, then audit")
    return found


def release_scores(release: Release, known: Triples, candidates: Triples) -> NDArray[np.float64]:
    """For each candidate how much likelier the release is with it than without (log), given all `known` triples."""
    scores = release.likelihood_ratios(known, candidates)
    if scores is None:
        raise RunError("expected a release with everything that was asked, got the part that belongs to a model")
    return scores


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
    train, sizes = np.unique(shard.train, axis=0), (len(shard.entities), len(shard.relations))
    return np.ascontiguousarray(train[~np.isin(triple_keys(train, sizes), triple_keys(candidates, sizes))]), candidates
