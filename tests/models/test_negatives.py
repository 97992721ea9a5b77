"""Negatives are uniform, take turns, and avoid known triples when told to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedkge.base.errors import ConfigurationError
from fedkge.models.negatives import Negatives

TRIPLES = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 1, 0]], dtype=np.int32)


def test_drawn_entities_are_uniform():
    """Chi-square against uniform; a right sampler fails one run in a thousand, and the seed is fixed."""
    ids = Negatives(20, 500).draw(np.zeros((40, 3), np.int32), "tail", np.random.default_rng(7))
    assert stats.chisquare(np.bincount(ids.ravel(), minlength=20)).pvalue > 0.001


def test_groups_cover_a_batch_that_is_not_a_multiple():
    assert Negatives(20, 3, group_size=4).draw(np.zeros((9, 3), np.int32), "tail", np.random.default_rng(7)).shape == (
        3,
        3,
    )


@pytest.mark.parametrize(("corrupt", "sides"), [("tail", "tt"), ("head", "hh"), ("both", "th")])
def test_sides_take_turns_only_for_both(corrupt, sides):
    negatives = Negatives(5, 1, corrupt=corrupt)
    assert "".join(negatives.side(step)[0] for step in range(2)) == sides


@pytest.mark.parametrize("side", ["tail", "head"])
def test_filtered_negatives_are_never_known(side):
    known = {tuple(triple) for triple in TRIPLES.tolist()}
    negatives = Negatives(6, 200, known=TRIPLES)
    ids = negatives.draw(TRIPLES, side, np.random.default_rng(1))
    for triple, row in zip(TRIPLES.tolist(), ids.tolist(), strict=True):
        for entity in row:
            head, relation, tail = triple
            assert ((head, relation, entity) if side == "tail" else (entity, relation, tail)) not in known
    assert len(set(ids[0].tolist())) > 1


def test_an_entity_known_with_all_others_does_not_hang():
    everything = np.array([[0, 0, tail] for tail in range(3)], dtype=np.int32)
    ids = Negatives(3, 4, known=everything).draw(everything, "tail", np.random.default_rng(1))
    assert ids.shape == (3, 4)


def test_filtering_shared_negatives_is_refused():
    with pytest.raises(ConfigurationError, match="groups of one"):
        Negatives(5, 1, group_size=2, known=TRIPLES)
