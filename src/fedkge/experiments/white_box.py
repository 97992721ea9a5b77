"""The auditor's own score: what the strongest adversary that the promise covers can tell about a canary.

It knows everything but the coins: the victim's other triples, both of its tables before and after every round, the clip
and the loss. No party of a federation sees that much (relations stay with their client), but the promise holds against
it too, so a bound from this score may be held against the claim.

In units of summed gradients a round moved the tables by y = known + sum_i coin_i g_i + noise, where g_i is the clipped
gradient of canary i at the tables before. What is known, every coin at a half, is taken out, and the rest is fitted by
the g_i of all canaries together: the least squares

    x = argmin sum over rounds and tables |y - sum_i x_i g_i|^2 / variance + 4 |x|^2

whose last term is the prior of a coin less a half. The variance of each table is what the fit leaves over, so a table
without noise counts for as much as it tells. For one step of SGD per round on all triples this is the best linear
estimate; with more steps, Adam or sampling it is an approximation, as all attacks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.experiments.audited_release import audited_release, auditors_triples, release_scores
from fedkge.experiments.recorded_views import shard_of
from fedkge.experiments.targets import Targets
from fedkge.experiments.targets.canaries import CANARIES
from fedkge.experiments.targets.files import read_targets
from fedkge.graph import HEAD, RELATION, TAIL, Side, Triples
from fedkge.mechanisms.clipping import Clip, PerTriple
from fedkge.models import Embedding, Tables, initial_tables
from fedkge.models.per_triple import Differentiator, TripleGradients, TripleLoss
from fedkge.models.tables import Ids, Table
from fedkge.runs.round import Parties
from fedkge.runs.run import Run, scorer_of, shape_of
from fedkge.runs.strategies import strategy_of
from fedkge.runs.transcript import Transcript
from fedkge.store.randomness import client_generator

CHUNK = 256
DRAWS = 4
"""Corruptions inside a gradient are secret: the auditor takes the mean over so many draws of its own."""
PASSES, STEPS = 4, 60
"""Fits, each with the variances that the one before left over, and the conjugate gradients of each."""
NO_CLIP = 1e90
"""Without a defence gradients are as long as they are."""

Sums = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Movement:
    """The victim's tables before a round, and by how much the round moved them."""

    before: Tables
    entities: Sums
    relations: Sums


@dataclass(frozen=True, slots=True, eq=False)
class _Pull:
    """The clipped gradients of some triples: each one's own rows, and the sum of all over both tables."""

    heads: Sums
    tails: Sums
    relations: Sums
    entity_sum: Sums
    relation_sum: Sums


def canaries_of(run: Run) -> Targets:
    """The canaries of a run and their coins, from the auditor's file beside it."""
    if run.directory is None or run.configuration.experiment.canaries == 0:
        raise ConfigurationError("expected a run directory with canaries: train with --canaries 1000 --out RUN")
    return read_targets(run.directory / CANARIES, run.entities, run.relations)


def white_box_scores(run: Run, canaries: Targets) -> NDArray[np.float64]:
    """One score per canary, higher for "in".

    It comes from what the defence released, if that is scored by itself (`Release.likelihood_ratios`), else from every
    recorded round whose beginning was recorded too.

    Only the triples of `canaries` are read, never their coins. Hand it to `fedkge.audit.audit`, and fix the number of
    guesses before.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> shards = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1), clients=2, seed=7)
    >>> options = {"canaries": 40, "canary_coins": "seeded", "canary_source": "victim", "record": "all", "seed": 7}
    >>> with TemporaryDirectory() as folder:
    ...     run = fk.train(shards, rounds=1, dimension=8, negatives=8, out=f"{folder}/run", **options)
    ...     white_box_scores(run, canaries_of(run)).shape
    (40,)
    """
    options, (known, candidates) = run.configuration, auditors_triples(run, canaries)
    if chosen_defence(options).auditing.scores:
        return release_scores(audited_release(run), known, candidates)
    observed: list[_Observed] = []
    for number, movement in _movements(run):
        random = np.random.default_rng((number, DRAWS))
        others, ours = (_pull(movement.before, triples, options, random) for triples in (known, candidates))
        ends = _matrix(((HEAD, ours.heads), (TAIL, ours.tails)), candidates, movement.entities.shape)
        relations = _matrix(((RELATION, ours.relations),), candidates, movement.relations.shape)
        for matrix, moved, pull in (
            (ends, movement.entities, others.entity_sum + ours.entity_sum / 2),
            (relations, movement.relations, others.relation_sum + ours.relation_sum / 2),
        ):
            left = _unexpected(moved, pull, _descent(options, number))
            observed.append(_Observed(matrix, left.ravel()))
    return _fit(observed, len(candidates))


@dataclass(frozen=True, slots=True, eq=False)
class _Observed:
    """What one table showed in one round: one row of `gradients` per canary, and the movement that was not expected."""

    gradients: sparse.csr_array
    left: Sums


def _fit(observed: Sequence[_Observed], count: int) -> Sums:
    """The regularised least squares; the variances are what the fit before left over, at first everything."""
    fitted = np.zeros(count)
    for _ in range(PASSES):
        variances = [max(float(np.mean((one.left - fitted @ one.gradients) ** 2)), 1e-300) for one in observed]
        shown = [one.gradients @ one.left / value for one, value in zip(observed, variances, strict=True)]

        def curvature(x: Sums, variances: Sequence[float] = variances) -> Sums:
            parts = zip(observed, variances, strict=True)
            return np.asarray(4 * x + sum(one.gradients @ (x @ one.gradients) / value for one, value in parts))

        operator = linalg.LinearOperator((count, count), matvec=curvature, dtype=np.float64)
        fitted, _ = linalg.cg(operator, np.add.reduce(shown), rtol=1e-4, maxiter=STEPS)
    return fitted


def _matrix(parts: Sequence[tuple[int, Sums]], triples: Triples, shape: tuple[int, ...]) -> sparse.csr_array:
    """The gradients of the candidates, one row for each, over all numbers of a table."""
    width, blocks = shape[1], []
    for column, rows in parts:
        places = triples[:, column].astype(np.int64)[:, None] * width + np.arange(width)
        pointers = np.arange(0, places.size + 1, width)
        blocks.append(
            sparse.csr_array((rows.ravel(), places.ravel(), pointers), shape=(len(triples), shape[0] * width))
        )
    return sum(blocks[1:], blocks[0])


def _movements(run: Run) -> Iterator[tuple[int, _Movement]]:
    if run.directory is None or not strategy_of(run.configuration).exchanges_entities:
        raise ConfigurationError("a white-box score needs a run with a directory and strategy fede")
    victim = run.configuration.experiment.victim
    transcript, parties = Transcript(run.directory), Parties.of(victim, server=True)
    relations: dict[int, Table | None] = {0: _first_relations(run)}
    rounds = 0
    for number in transcript.rounds(parties):
        seen = transcript.read(number, parties)
        began, ended = relations.get(number - 1), seen.private[victim]["relations"]
        relations[number] = ended
        if began is None or victim not in seen.uploads:
            continue
        before, after = seen.broadcasts[victim]["entities"], seen.uploads[victim]["entities"]
        rounds += 1
        yield (
            number,
            _Movement(
                Tables(before, began),
                after.astype(np.float64) - before,
                ended.astype(np.float64) - began,
            ),
        )
    if rounds == 0:
        raise RunError(f"{run.directory}: no recorded round follows another one: train with --record all")


def _first_relations(run: Run) -> Table | None:
    """The victim's relations before round 1; start vectors are not followed back."""
    options, shard = run.configuration, shard_of(run, run.configuration.experiment.victim)
    if options.training.init or options.experiment.seed is None:
        return None
    shape, number = shape_of(options), run.clients.index(options.experiment.victim)
    scorer, generator = scorer_of(options), client_generator(options.experiment.seed, number, 0)
    return initial_tables(scorer, shape, len(shard.entities), len(shard.relations), generator).relations


def _descent(options: Configuration, round_number: int) -> float | None:
    """By what a round multiplies the summed gradients, where it is plain: for SGD under a defence."""
    plain = options.training.optimiser == "sgd" and options.privacy.public_triples and options.training.local_steps
    if not (plain and chosen_defence(options).gradients(options).poisson):
        return None
    sampled = min(1.0, options.training.batch_size / options.privacy.public_triples) / options.training.batch_size
    rate = options.training.learning_rate * options.training.learning_rate_decay ** (round_number - 1)
    return -rate * options.training.local_steps * sampled


def _unexpected(moved: Sums, pull: Sums, descent: float | None) -> Sums:
    """The movement in units of summed gradients, less what was expected.

    Where other forces (public negatives) took the table up the expected pull, nothing is taken out, and the movement
    counts for as long as the pull.
    """
    along = descent or float(np.vdot(moved, pull)) / max(float(np.vdot(pull, pull)), 1e-300)
    if along < 0:
        return moved / along - pull
    return np.asarray(-moved * np.linalg.norm(pull) / max(float(np.linalg.norm(moved)), 1e-300))


def _pull(before: Tables, triples: Triples, options: Configuration, random: np.random.Generator) -> _Pull:
    """The clipped gradients of these triples; where their corruptions are inside, the mean over draws of them."""
    gradients = chosen_defence(options).gradients(options)
    clip, inside = gradients.clip or Clip(NO_CLIP), gradients.corruptions_inside
    draws = DRAWS if inside else 1
    own = [np.zeros((len(triples), table.shape[1])) for table in (before.entities, before.entities, before.relations)]
    sums = np.zeros(before.entities.shape), np.zeros(before.relations.shape)
    differentiator = _differentiator(before, options, inside)
    for first in range(0, len(triples), CHUNK):
        part = slice(first, first + CHUNK)
        chunk = triples[part]
        loops = chunk[:, HEAD] == chunk[:, TAIL]
        for _ in range(draws):
            shape = (len(chunk), differentiator.corruptions)
            drawn: Ids = random.integers(0, len(before.entities), shape, dtype=np.int32)
            found = differentiator.gradients(chunk, drawn)
            clip.add_to(
                PerTriple(found.entities, found.entity_rows, found.starts, found.relations, found.relation_rows), *sums
            )
            entities, third = _apart(found, clip)
            first_rows = found.starts[:-1]
            own[0][part] += entities[first_rows]
            own[1][part][~loops] += entities[first_rows[~loops] + 1]
            own[2][part] += third
    heads, tails, relations = (rows / draws for rows in own)
    return _Pull(heads, tails, relations, sums[0] / draws, sums[1] / draws)


def _differentiator(before: Tables, options: Configuration, inside: bool) -> Differentiator:
    both: tuple[Side, ...] = ("tail", "head")
    sides = both if options.training.corrupt == "both" else (options.training.corrupt,)
    loss = TripleLoss(sides if inside else (), options.training.temperature)
    embedding = Embedding(scorer_of(options), before, options.model.margin)
    return Differentiator(embedding, loss, options.training.negatives if inside else 0, CHUNK)


def _apart(found: TripleGradients, clip: Clip) -> tuple[Sums, Sums]:
    """Each triple's clipped rows. Clipping adds into rows by their numbers, so every row gets a number of its own."""
    entities, relations = np.zeros(found.entities.shape), np.zeros(found.relations.shape)
    places = np.arange(max(len(entities), len(relations)), dtype=np.int32)
    rows, others = places[: len(entities)], places[: len(relations)]
    clip.add_to(PerTriple(found.entities, rows, found.starts, found.relations, others), entities, relations)
    return entities, relations
