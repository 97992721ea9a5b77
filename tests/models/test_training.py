"""The trainer reports its progress, and an unknown model is refused; what each model learns is in `ModelCase`."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.base.errors import ConfigurationError
from fedkge.models import Embedding, ModelShape, initial_tables, make_scorer
from fedkge.models.negatives import Negatives
from fedkge.models.training import Trainer, TrainingOptions
from tests.cases.models import ring


def test_progress_hears_of_every_triple():
    triples, shape, heard = ring(), ModelShape(dimension=4), []
    scorer = make_scorer("transe", shape)
    embedding = Embedding(scorer, initial_tables(scorer, shape, 30, 2, np.random.default_rng(0)), 10.0)
    trainer = Trainer(embedding, Negatives(30, 2), TrainingOptions(batch_size=7))
    trainer.epoch(triples, np.random.default_rng(0), heard.append)
    assert sum(heard) == len(triples)


def test_an_unknown_model_lists_the_near_ones():
    with pytest.raises(ConfigurationError, match="did you mean transe"):
        make_scorer("transee", ModelShape())


def test_transe_refuses_other_norms():
    with pytest.raises(ConfigurationError, match="norm 1 or 2, got 3"):
        make_scorer("transe", ModelShape(norm=3))
