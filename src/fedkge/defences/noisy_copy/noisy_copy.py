"""The noisy copy: how it is drawn, what it lets expect, and which of its triples are believed.

First the profile of noisy counts (`fedkge.mechanisms.counts`). It tells which cells (head, relation, tail) may well
hold a triple, and those are asked by randomised response. What comes back are most of the triples that were asked for,
and false ones whose number is known. A false one is as likely in one cell as in another, a true one follows the counts
and, later, the model. So every answer has a chance of being true, and training uses those that are likelier true than
not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import RunError
from fedkge.base.short_repr import short_repr
from fedkge.defences.counts.denoising import Profile, Row
from fedkge.defences.counts.released import matches, profile_cells
from fedkge.defences.noisy_copy.copy_prior import CopyPrior
from fedkge.defences.noisy_copy.evidence import evidence
from fedkge.defences.noisy_copy.expectation import Cells, Numbers, asked_cells, ends_of, least_rate
from fedkge.defences.noisy_copy.likelihood import joint_ratios
from fedkge.defences.noisy_copy.questions import Questions
from fedkge.defences.release import Holding, Release, Rows
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.responses import flip_chance, respond
from fedkge.models.embedding import Embedding

MOST_ASKED = 2**23
"""At most so many cells are asked; where the profile suggests more, those of the lowest rates are left out."""
SLACK = 0.2
"""Cells are asked down to this part of the rate at which a yes is as likely true as false: a model may believe it."""
HELD_OUT = 16
"""One answer of so many is kept from training and from counts, so that it can judge both."""
BELIEVED = 0.5


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """How a client copies its graph: the scale of the profile's noise, and the epsilon of each answer.

    >>> CopyPlan(profile_scale=0.5, epsilon=5.0).epsilon
    5.0
    """

    profile_scale: float
    epsilon: float


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class NoisyCopy(Release):
    """Everything that was released. Whatever is computed from it costs no more.

    >>> triples = np.array([[0, 0, 2], [1, 0, 2], [3, 0, 2]], np.int32)
    >>> copy = NoisyCopy.draw(triples, 4, 1, CopyPlan(profile_scale=0.1, epsilon=20.0), NoiseSource.research(1))
    >>> copy.believed().tolist()
    [[0, 0, 2], [1, 0, 2], [3, 0, 2]]
    """

    entities: int
    relations: int
    epsilon: float
    cells: Cells
    """Those that were answered with yes, ascending."""
    rates: Numbers
    """The number of triples to be expected in each of them before the answer."""
    expected: Profile
    """Expected counts by relation and side, by the noisy counts and the answers."""
    weight: float = 1.0
    """How much the counts weigh beside the model, as it was found last (`fedkge.defences.noisy_copy.weighing`)."""
    questions: Questions | None = None
    """What was asked, for an audit of the answers; None in a model."""

    @classmethod
    def draw(cls, triples: Triples, entities: int, relations: int, plan: CopyPlan, source: NoiseSource) -> NoisyCopy:
        """Count and ask. What is asked follows from the noisy counts alone."""
        distinct = np.unique(triples, axis=0).astype(np.int64)
        cells, size = profile_cells(distinct, entities, relations), 2 * relations * entities
        counts = NoisyCounts.release(cells, size, plan.profile_scale, source)
        profile = Profile.of(counts, entities)
        least = least_rate(profile, SLACK * flip_chance(plan.epsilon), MOST_ASKED)
        held = np.sort(cells_of(distinct, entities))
        yes = respond(asked_cells(profile, least), held, plan.epsilon, source)
        rates = _rates(yes, profile)
        expected = _corrected(profile, yes, rates, plan.epsilon, least)
        questions = Questions(counts, entities, least)
        return cls(entities, relations, plan.epsilon, yes, rates, expected, questions=questions)

    def believed(self, embedding: Embedding | None = None, generator: np.random.Generator | None = None) -> Triples:
        """The answers that are more likely true than not, by counts and, if there is one, by the model so far."""
        rates = self.rates
        if embedding is not None and generator is not None:
            answers = triples_of(self.cells, self.entities)
            rates = rates * np.exp(evidence(answers, self.expected, embedding, generator))
        return triples_of(self.cells[truths(rates, self.epsilon) >= BELIEVED], self.entities)

    def without_answers(self) -> NoisyCopy:
        """What scores need: the expected counts alone."""
        return replace(self, cells=np.empty(0, np.int64), rates=np.empty(0), questions=None)

    def model_arrays(self) -> dict[str, NDArray[Any]]:
        """The expected counts alone."""
        return self.without_answers().arrays()

    @property
    def profile_expected(self) -> Profile:
        """By the noisy counts and the answers."""
        return self.expected

    def prior(self, weight: float) -> CopyPrior:
        """The expected counts, as they weigh beside the model that they were weighed with."""
        return CopyPrior(self.expected, self.weight * weight)

    def asked(self, candidates: Triples) -> NDArray[np.bool_] | None:
        """Which of these triples the copy was asked about; None if it is only the part that belongs to a model."""
        return None if self.questions is None else self.questions.among(cells_of(candidates, self.entities))

    def likelihood_ratios(self, known: Triples, candidates: Triples) -> Numbers | None:
        """From the answers and the noisy counts: an answer is turned round with odds of exp(-epsilon).

        >>> held = np.array([[0, 0, 2], [1, 0, 2], [3, 0, 2]], np.int32)
        >>> copy = NoisyCopy.draw(held, 4, 1, CopyPlan(profile_scale=0.2, epsilon=4.0), NoiseSource.research(1))
        >>> copy.likelihood_ratios(held[:2], np.array([[3, 0, 2], [0, 0, 1]], np.int32)).round(1).tolist()
        [14.0, -10.0]
        """
        if self.questions is None:
            return None
        asked = cells_of(candidates, self.entities)
        no = np.where(self.questions.among(asked), -self.epsilon, 0.0)
        answers = np.where(np.isin(asked, self.cells), self.epsilon, no)
        sizes = (self.entities, self.relations)
        others, cells = (profile_cells(some.astype(np.int64), *sizes) for some in (known, candidates))
        return joint_ratios(self.questions.counts, others, cells, answers)

    def holding(self, triples: int) -> Holding:
        """How much of a graph of this public size a copy holds that still has its answers.

        Guarantee: post-processing of what was released and of a public number, so the estimate may be shared.

        >>> held = np.array([[0, 0, 2], [1, 0, 2], [3, 0, 2]], np.int32)
        >>> copy = NoisyCopy.draw(held, 4, 1, CopyPlan(profile_scale=0.1, epsilon=20.0), NoiseSource.research(1))
        >>> found = copy.holding(triples=3)
        >>> found.believed, round(found.true, 3), found.share > 0.99
        (3, 3.0, True)
        """
        chances = truths(self.rates, self.epsilon)
        believed = chances >= BELIEVED
        return Holding(int(np.count_nonzero(believed)), float(chances[believed].sum()), triples)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The copy as plain arrays, for a file."""
        rows = self.expected.rows
        return {
            "sizes": np.array([self.entities, self.relations], np.int64),
            "epsilon": np.array([self.epsilon], np.float64),
            "weight": np.array([self.weight], np.float64),
            "cells": self.cells,
            "rates": self.rates,
            "lengths": np.array([len(row.entities) for row in rows], np.int64),
            "rests": np.array([row.rest for row in rows], np.float64),
            "listed": np.concatenate([row.entities for row in rows]).astype(np.int64),
            "means": np.concatenate([row.means for row in rows]).astype(np.float64),
            **(self.questions.arrays() if self.questions else {}),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NoisyCopy:
        """The copy that `arrays` was made from."""
        try:
            entities, relations = (int(number) for number in arrays["sizes"])
            ends = np.cumsum(arrays["lengths"])[:-1]
            parts = zip(np.split(arrays["listed"], ends), np.split(arrays["means"], ends), arrays["rests"], strict=True)
            rows = tuple(Row(listed, means, float(rest)) for listed, means, rest in parts)
            profile, questions = Profile(entities, rows), Questions.of_arrays(arrays, entities, relations)
            epsilon, weight = (float(arrays[name][0]) for name in ("epsilon", "weight"))
            return cls(entities, relations, epsilon, arrays["cells"], arrays["rates"], profile, weight, questions)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise RunError(f"expected the arrays of a noisy copy, got {sorted(arrays)}: {error}") from error

    def renumbered(self, entities: Rows, relations: Rows) -> NoisyCopy:
        """The expected counts under other numbers: entity i is the old `entities[i]`, relation k the old one there."""
        rows = []
        for old in [*relations, *(self.relations + np.asarray(relations))]:
            row = self.expected.rows[old]
            places, numbers = matches(row.entities, entities)
            order = np.argsort(numbers)
            rows.append(Row(numbers[order], row.means[places][order], row.rest))
        profile = Profile(len(entities), tuple(rows))
        return replace(self.without_answers(), entities=len(entities), relations=len(relations), expected=profile)


def truths(rates: Numbers, epsilon: float) -> Numbers:
    """The chance that a yes is true, where so many triples were expected.

    >>> truths(np.array([0.0067, 0.5]), epsilon=5.0).round(2).tolist()
    [0.5, 0.99]
    """
    before, flip = -np.expm1(-rates), flip_chance(epsilon)
    true = before * (1 - flip)
    return np.asarray(true / (true + (1 - before) * flip))


def cells_of(triples: NDArray[np.integer[Any]], entities: int) -> Cells:
    """The number of each triple's cell.

    >>> cells_of(np.array([[4, 1, 2]]), entities=5).tolist()
    [47]
    """
    heads, relations, tails = triples.astype(np.int64).T
    return np.asarray((relations * entities + heads) * entities + tails)


def held_out(cells: Cells) -> NDArray[np.bool_]:
    """Which answers are kept from training and from counts, by a hash of their cell.

    >>> round(float(held_out(np.arange(10_000)).mean()), 3)
    0.062
    """
    mixed = cells.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
    return np.asarray(mixed % np.uint64(HELD_OUT) == 0)


def triples_of(cells: Cells, entities: int) -> Triples:
    """The triples that these cells stand for."""
    lines, tails = np.divmod(cells, entities)
    relations, heads = np.divmod(lines, entities)
    return np.column_stack((heads, relations, tails)).astype(np.int32)


def _rates(cells: Cells, profile: Profile) -> Numbers:
    triples, rates = triples_of(cells, profile.entities), np.empty(len(cells))
    starts = np.searchsorted(triples[:, RELATION], np.arange(len(profile.rows) // 2 + 1))
    for relation, ends in enumerate(ends_of(profile)):
        part = slice(starts[relation], starts[relation + 1])
        rates[part] = ends.rates(triples[part, HEAD].astype(np.int64), triples[part, TAIL].astype(np.int64))
    return rates


def _corrected(profile: Profile, cells: Cells, rates: Numbers, epsilon: float, least: float) -> Profile:
    """The profile after the answers: what was expected of the cells that were asked goes, what they said comes.

    A yes counts as its chance of being true. A no may be a lie too: where so few triples are expected, its chance is
    the rate times the `odds` of a lie. Of the cells that are held out stays what was expected.
    """
    taught = ~held_out(cells)
    cells, rates = cells[taught], rates[taught]
    triples, relations = triples_of(cells, profile.entities), len(profile.rows) // 2
    odds = math.exp(-epsilon)
    more = truths(rates, epsilon) - odds * rates
    starts = np.searchsorted(triples[:, RELATION], np.arange(relations + 1))
    sides: tuple[list[Row], list[Row]] = ([], [])
    for relation, ends in enumerate(ends_of(profile)):
        part = slice(starts[relation], starts[relation + 1])
        head_sums, tail_sums = ends.covered(least)
        for side, values, sums, column in ((0, ends.tails, tail_sums, TAIL), (1, ends.heads, head_sums, HEAD)):
            row = profile.rows[relation + side * relations]
            answered = np.bincount(triples[part, column], more[part], profile.entities)
            after = np.maximum(values + answered - (1 - 1 / HELD_OUT) * (1 - odds) * sums, 0)
            listed = np.union1d(row.entities, triples[part, column]).astype(np.int64)
            others = np.setdiff1d(np.arange(profile.entities), listed, assume_unique=True)
            rest = float(after[others[0]]) if len(others) else 0.0
            sides[side].append(Row(listed, after[listed], rest))
    return Profile(profile.entities, (*sides[0], *sides[1]))
