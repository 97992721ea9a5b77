"""Clipping equals its definition, and one triple changes sums, gaps and ranges by no more than the clip says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkge.base.errors import PrivacyError
from fedkge.mechanisms import Clip, PerTriple, Touched
from fedkge.mechanisms.gaps import Ordered
from tests.mechanisms.batches import Gradient, batch_of, clipped_sums, random_gradients, sums_in_numpy

TABLE, RELATIONS, WIDTH = 6, 2, 3
ROUNDING = 1e-9

clips = st.builds(
    Clip,
    joint=st.floats(0.05, 20),
    row=st.none() | st.floats(0.05, 20),
    normalise=st.booleans(),
)
seeds = st.integers(0, 2**32)


def gaps_of(clip: Clip, gradients: list[Gradient]) -> np.ndarray:
    entities, _ = clipped_sums(clip, gradients, TABLE, RELATIONS, WIDTH)
    rows = np.arange(TABLE, dtype=np.int32)
    touched = Touched(rows, np.ones(TABLE, np.int64), np.linalg.norm(entities, axis=1), TABLE)
    return Ordered.of(touched).gaps(range(1, TABLE))


def pairs_against_each_other(changes: np.ndarray) -> np.ndarray:
    return np.abs(changes[:, None] - changes[None, :])


@settings(deadline=None)
@given(clip=clips, seed=seeds, triples=st.integers(0, 8), most_rows=st.integers(1, 6))
def test_equals_its_definition(clip: Clip, seed: int, triples: int, most_rows: int) -> None:
    gradients = random_gradients(np.random.default_rng(seed), triples, TABLE, RELATIONS, WIDTH, most_rows)
    got = clipped_sums(clip, gradients, TABLE, RELATIONS, WIDTH)
    expected = sums_in_numpy(clip, gradients, TABLE, RELATIONS, WIDTH)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@settings(deadline=None)
@given(clip=clips, seed=seeds, triples=st.integers(0, 8), most_rows=st.integers(1, 6), scale=st.floats(1e-100, 1e100))
def test_one_triple_changes_the_sum_by_at_most_the_joint_clip(
    clip: Clip, seed: int, triples: int, most_rows: int, scale: float
) -> None:
    *rest, (rows, relation, value) = random_gradients(
        np.random.default_rng(seed), triples + 1, TABLE, RELATIONS, WIDTH, most_rows
    )
    extra: Gradient = ({row: scale * numbers for row, numbers in rows.items()}, relation, scale * value)
    without = clipped_sums(clip, rest, TABLE, RELATIONS, WIDTH)
    added = clipped_sums(clip, [*rest, extra], TABLE, RELATIONS, WIDTH)
    entity_change, relation_change = added[0] - without[0], added[1] - without[1]
    change = math.hypot(np.linalg.norm(entity_change), np.linalg.norm(relation_change))
    assert change <= clip.sensitivity * (1 + ROUNDING)
    assert np.linalg.norm(entity_change, axis=1).max() <= clip.row_bound * (1 + ROUNDING)


@settings(deadline=None)
@given(clip=clips, seed=seeds)
def test_a_single_clipped_gradient_is_below_its_bound_in_floating_point(clip: Clip, seed: int) -> None:
    gradients = random_gradients(np.random.default_rng(seed), 1, TABLE, RELATIONS, WIDTH)
    entities, relations = clipped_sums(clip, gradients, TABLE, RELATIONS, WIDTH)
    assert math.fsum((entities**2).ravel()) + math.fsum((relations**2).ravel()) <= clip.sensitivity**2


@settings(deadline=None, max_examples=300)
@given(clip=clips, seed=seeds, triples=st.integers(0, 12))
def test_one_triple_changes_gaps_and_ranges_by_at_most_their_sensitivities(clip: Clip, seed: int, triples: int) -> None:
    gradients = random_gradients(np.random.default_rng(seed), triples + 1, TABLE, RELATIONS, WIDTH)
    changes = gaps_of(clip, gradients) - gaps_of(clip, gradients[:-1])
    assert np.abs(changes).max() <= clip.gap_sensitivity * (1 + ROUNDING)
    assert pairs_against_each_other(changes).max() <= clip.range_sensitivity * (1 + ROUNDING)


def along(size: float) -> np.ndarray:
    return np.array([size, 0.0, 0.0])


def pile(row: int, size: float) -> list[Gradient]:
    """Triples that bring the row's sum to this size, by steps below any clip used here."""
    pieces = math.ceil(size / 0.5)
    return [({row: along(size / pieces)}, 0, along(0.0)) for _ in range(pieces)]


def test_gap_and_range_sensitivities_are_attained_by_the_row_clip() -> None:
    clip = Clip(joint=1.2, row=0.8)
    before = [*pile(0, 5.0), *pile(1, 3.0), *pile(2, 1.0)]
    extra: Gradient = ({0: along(0.8), 1: along(-0.8)}, 0, along(0.0))
    changes = gaps_of(clip, [*before, extra]) - gaps_of(clip, before)
    assert changes[0] == pytest.approx(1.6) == pytest.approx(clip.gap_sensitivity)
    assert pairs_against_each_other(changes).max() == pytest.approx(2.4) == pytest.approx(clip.range_sensitivity)


def test_gap_sensitivity_is_attained_by_the_joint_clip() -> None:
    clip = Clip(joint=1.2)
    before = [*pile(0, 3.0), *pile(1, 3.0)]
    extra: Gradient = ({0: along(9.0), 1: along(-9.0)}, 0, along(0.0))
    changes = gaps_of(clip, [*before, extra]) - gaps_of(clip, before)
    assert changes[0] == pytest.approx(math.sqrt(2) * 1.2) == pytest.approx(clip.gap_sensitivity)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("place", ["entity", "relation"])
@pytest.mark.parametrize("normalise", [False, True])
def test_what_is_not_finite_contributes_nothing(bad: float, place: str, normalise: bool) -> None:
    good: Gradient = ({0: along(1.0), 1: along(2.0)}, 1, along(3.0))
    broken: Gradient = (
        {0: along(bad if place == "entity" else 1.0), 2: along(1.0)},
        0,
        along(bad if place == "relation" else 1.0),
    )
    clip = Clip(1.0, normalise=normalise)
    for one, other in zip(
        clipped_sums(clip, [good, broken, good], TABLE, RELATIONS, WIDTH),
        clipped_sums(clip, [good, good], TABLE, RELATIONS, WIDTH),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_vanishing_gradient_contributes_nothing_even_when_normalised() -> None:
    for size in (0.0, 5e-324, 1e-162):
        entities, relations = clipped_sums(
            Clip(1.0, normalise=True), [({0: along(size)}, 0, along(size))], TABLE, RELATIONS, WIDTH
        )
        assert not entities.any()
        assert not relations.any()


def test_normalising_scales_small_gradients_up_to_the_bound() -> None:
    entities, relations = clipped_sums(
        Clip(2.0, normalise=True), [({0: along(3e-5)}, 0, along(4e-5))], TABLE, RELATIONS, WIDTH
    )
    assert entities[0, 0] == pytest.approx(1.2)
    assert relations[0, 0] == pytest.approx(1.6)


@settings(deadline=None)
@given(clip=clips, seed=seeds, triples=st.integers(1, 8))
def test_slots_hold_the_same_sums_in_single_precision_too(clip: Clip, seed: int, triples: int) -> None:
    generator = np.random.default_rng(seed)
    batch = batch_of(random_gradients(generator, triples, TABLE, RELATIONS, WIDTH, 4), WIDTH, np.float32)
    dense, sparse = np.zeros((TABLE, WIDTH)), np.zeros((TABLE, WIDTH))
    relations, other_relations = np.zeros((RELATIONS, WIDTH)), np.zeros((RELATIONS, WIDTH))
    slots = generator.permutation(TABLE).astype(np.int32)
    clip.add_to(batch, dense, relations)
    clip.add_to_slots(batch, slots, sparse, other_relations)
    np.testing.assert_array_equal(dense, sparse[slots])
    np.testing.assert_array_equal(relations, other_relations)


def test_a_row_without_a_place_is_refused_and_overwrites_nothing() -> None:
    batch = batch_of([({1: along(1.0)}, 0, along(1.0))], WIDTH)
    entities = np.zeros((TABLE, WIDTH))
    with pytest.raises(PrivacyError, match="row numbers of these tables"):
        Clip(1.0).add_to_slots(batch, np.full(TABLE, -1, np.int32), entities, np.zeros((RELATIONS, WIDTH)))
    assert not entities.any()
    with pytest.raises(PrivacyError, match="row numbers of these tables"):
        Clip(1.0).add_to(batch, np.zeros((1, WIDTH)), np.zeros((RELATIONS, WIDTH)))


def test_sums_in_single_precision_are_refused() -> None:
    batch = batch_of([({1: along(1.0)}, 0, along(1.0))], WIDTH)
    with pytest.raises(PrivacyError, match="float64"):
        Clip(1.0).add_to(batch, np.zeros((TABLE, WIDTH), np.float32), np.zeros((RELATIONS, WIDTH)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("joint", "row"), [(0.0, None), (-1.0, None), (math.nan, None), (math.inf, None), (1.0, 0.0), (1.0, math.nan)]
)
def test_a_clip_that_bounds_nothing_is_refused(joint: float, row: float | None) -> None:
    with pytest.raises(PrivacyError):
        Clip(joint, row)


def test_a_self_loop_touches_one_row_once() -> None:
    batch = batch_of([({2: along(1.0)}, 0, along(1.0)), ({2: along(1.0), 4: along(1.0)}, 0, along(1.0))], WIDTH)
    entities, triples = np.zeros((TABLE, WIDTH)), np.array([[2, 0, 2], [2, 0, 4]], np.int32)
    Clip(10.0).add_to(batch, entities, np.zeros((RELATIONS, WIDTH)))
    rows, slots = np.array([2, 4], np.int32), np.full(TABLE, -1, np.int32)
    slots[rows] = [0, 1]
    touched = Touched.of_sums(triples, rows, slots, entities[rows], TABLE)
    assert touched.rows.tolist() == [2, 4]
    assert touched.counts.tolist() == [2, 1]
    np.testing.assert_allclose(touched.norms, [2.0, 1.0])


def test_check_refuses_starts_that_do_not_fit() -> None:
    rows = np.array([0], np.int32)
    with pytest.raises(PrivacyError, match="starts"):
        PerTriple(np.ones((1, 2)), rows, np.array([0, 2]), np.ones((1, 2)), rows).check()
