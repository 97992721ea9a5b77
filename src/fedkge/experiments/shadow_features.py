"""What the shadow attack measures of each target, by what its adversary sees: numbers for `fedkge.attacks.shadow`.

shadow-uploads  the server: the victim's uploads and what it was sent; relations are estimated from known triples.
shadow-model    whoever is given the final model: its tables and, under a defence that counts, its expected counts.
shadow-copy     the adversary of the proof: the victim's noisy copy itself, all counts and answers. No party of a
                federation sees it, but the promise holds against it too, and everything else follows from the copy.

Each of them knows all triples of all clients but the coins of the targets. The same is measured in the attacked run and
in the shadows, and no coin of the attacked run is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from fedkge.attacks.structure import estimate_relations, known_rows, newest_round, relation_is_known, table_of
from fedkge.attacks.trajectory import Trajectory
from fedkge.attacks.upload_difference import UploadDifference
from fedkge.defences.counts.released import profile_cells
from fedkge.defences.release import Release
from fedkge.experiments.audited_release import audited_release, auditors_triples, has_audited_release, release_scores
from fedkge.experiments.recorded_views import recorded_view, shard_of
from fedkge.experiments.targets import Targets, run_ids
from fedkge.graph import HEAD, TAIL, Side, Triples
from fedkge.models.embedding import Embedding
from fedkge.models.tables import Table, Tables
from fedkge.runs.run import Run
from fedkge.runs.view import Attacker, View

Features = NDArray[np.float64]
"""One row per target."""
BLOCK = 512
"""So many targets are compared with all entities at once."""
SURPRISE = 3.0
"""A count that is further from what is expected says no more about one triple."""
UPLOADS, MODEL, COPY = "shadow-uploads", "shadow-model", "shadow-copy"
SEEN_BY: dict[str, Attacker] = {UPLOADS: "server", MODEL: "recipient", COPY: "auditor"}
"""The variants of the attack, each with who could play it."""


def variants_of(run: Run) -> tuple[str, ...]:
    """The variants that a run allows: there is not always a copy to look at."""
    return tuple(name for name in SEEN_BY if name != COPY or has_audited_release(run))


def measure(run: Run, targets: Targets) -> dict[str, Features]:
    """The features of all targets by variant; the coins in `targets` are not read."""
    known, candidates = auditors_triples(run, targets)
    return {name: MEASURES[name](run, targets.everything, known, candidates) for name in variants_of(run)}


def upload_features(view: View, triples: Triples) -> Features:
    """From the server's view, whose auxiliary triples are all that it knows: how well each target fits the newest
    upload, and how the uploads moved towards it. A target whose relation is not known gets the mean of the others."""
    number = newest_round(view, UPLOADS, "upload")
    upload, auxiliary = table_of(view, number, "upload"), view.auxiliary
    relations = estimate_relations(view.scorer, upload, triples[:0] if auxiliary is None else auxiliary)
    able, rows = relation_is_known(relations, triples), np.flatnonzero(known_rows(upload))
    own = np.ascontiguousarray(triples[able])
    own[:, [HEAD, TAIL]] = np.searchsorted(rows, own[:, [HEAD, TAIL]])
    tables = Tables(np.ascontiguousarray(upload[rows]), np.nan_to_num(relations).astype(upload.dtype, order="C"))
    fit = answer_features(Embedding(view.scorer, tables, view.margin), own)
    features = np.tile(fit.mean(axis=0), (len(triples), 1))
    features[able] = fit
    return np.column_stack([features, *(attack.score(view, triples) for attack in (UploadDifference(), Trajectory()))])


def model_features(embedding: Embedding, released: Release | None, known: Triples, triples: Triples) -> Features:
    """From a model: how well each target fits the tables, and how far counts exceed those of the `known` triples."""
    fit = answer_features(replace(embedding, prior=None), triples)
    return fit if released is None else np.column_stack([fit, unexplained_counts(released, known, triples)])


def answer_features(embedding: Embedding, triples: Triples) -> Features:
    """The score of each triple, and the log-probability of its tail and of its head among all entities.

    >>> from fedkge.models.transe import TransE
    >>> tables = Tables(np.array([[0.0], [1.0]], np.float32), np.array([[1.0]], np.float32))
    >>> answer_features(Embedding(TransE(), tables, 10.0), np.array([[0, 0, 1]], np.int32)).round(2).tolist()
    [[10.0, -0.31, -0.31]]
    """
    ends = [_log_chances(embedding, triples, side) for side in ("tail", "head")]
    return np.column_stack([embedding.score_triples(triples), *ends]).astype(np.float64)


def _log_chances(embedding: Embedding, triples: Triples, side: Side) -> Features:
    chances, column = np.empty(len(triples)), TAIL if side == "tail" else HEAD
    for first in range(0, len(triples), BLOCK):
        part = np.ascontiguousarray(triples[first : first + BLOCK])
        scores: Table = np.empty((len(part), embedding.candidates), np.float32)
        embedding.score(part, side, scores)
        own = scores[np.arange(len(part)), part[:, column]]
        chances[first : first + len(part)] = own - logsumexp(scores.astype(np.float64), axis=1)
    return chances


def unexplained_counts(released: Release, known: Triples, triples: Triples) -> Features:
    """For each triple's two cells the expected count by what was released, less the known triples and half of the
    targets there. A target's coin moves it by one half: what is beyond a few is clipped, and it counts for less in a
    cell with many targets, whose coins add up to noise.
    """
    profile = released.profile_expected
    sizes = (released.entities, released.relations)
    cells, others = (profile_cells(some.astype(np.int64), *sizes) for some in (triples, known))
    rows, ends = np.divmod(cells, released.entities)
    expected = np.empty(cells.shape)
    for row in np.unique(rows):
        here = rows == row
        expected[here] = profile.rows[row].full(released.entities)[ends[here]]
    explained, targets = (
        np.bincount(some.ravel(), minlength=2 * sizes[0] * sizes[1])[cells] for some in (others, cells)
    )
    left = np.clip(expected - explained - targets / 2, -SURPRISE, SURPRISE)
    return np.asarray(left / (1 + (targets - 1) / 4))


def _from_uploads(run: Run, triples: Triples, known: Triples, _: Triples) -> Features:
    victim, adversary = run.configuration.experiment.victim, run.configuration.experiment.adversary
    auxiliary = run_ids(known, shard_of(run, victim), run.entities, run.relations)
    return upload_features(recorded_view(run, "server", victim, adversary, auxiliary), triples)


def _from_model(run: Run, _: Triples, known: Triples, candidates: Triples) -> Features:
    victim = run.configuration.experiment.victim
    return model_features(run.embedding(victim), run.released(victim), known, candidates)


def _from_copy(run: Run, _: Triples, known: Triples, candidates: Triples) -> Features:
    return np.asarray(release_scores(audited_release(run), known, candidates)[:, None], dtype=np.float64)


MEASURES: dict[str, Callable[[Run, Triples, Triples, Triples], Features]] = {
    UPLOADS: _from_uploads,
    MODEL: _from_model,
    COPY: _from_copy,
}
"""Of each variant: features from a run, its targets, and known triples and targets in the victim's numbers."""
