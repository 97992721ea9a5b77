"""Rows changed: counts of hand-made rounds."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.attacks import RowsChanged, rows_changed
from fedkge.base.errors import ConfigurationError
from fedkge.models import make_scorer
from fedkge.runs.view import partial_table
from tests.attacks import Pieces, federation, shape_of, view_of


def test_counts_per_round() -> None:
    sent = partial_table(np.zeros((4, 2), np.float32), np.array([0, 1, 2, 5]), 6)
    upload = sent.copy()
    upload[1, 0] = 1e-30
    upload[5] = 2.0
    rounds = [Pieces(3, sent, sent.copy()), Pieces(4), Pieces(7, sent, upload)]
    view = view_of("server", make_scorer("transe", shape_of("transe")), rounds)
    assert rows_changed(view) == [RowsChanged(3, 0, 4), RowsChanged(7, 2, 4)]
    assert [count.share for count in rows_changed(view)] == [0.0, 0.5]


def test_a_client_cannot_count() -> None:
    with pytest.raises(ConfigurationError, match="upload"):
        rows_changed(federation("transe").view("client"))


def test_training_touches_every_row_of_the_small_federation() -> None:
    assert all(count.share > 0.9 for count in rows_changed(federation("transe").view("server")))
