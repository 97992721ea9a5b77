"""What is made of noisy counts: means, types and scores."""

from __future__ import annotations

import numpy as np
import pytest

from fedkge.base.errors import RunError
from fedkge.defences.counts.count_prior import CountPrior
from fedkge.defences.counts.denoising import Posterior, Profile
from fedkge.defences.counts.released import CountPlan, ReleasedCounts, profile_cells
from fedkge.evaluation import evaluate
from fedkge.evaluation.popularity import Popularity
from fedkge.graph import Graph
from fedkge.graph.synthetic import synthetic_graph
from fedkge.mechanisms.counts import NoisyCounts
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models import Embedding, ModelShape, initial_tables, make_scorer

QUIET = CountPlan(profile_scale=0.1, typed_scale=0.1, types=1)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return synthetic_graph(entities=300, relations=6, triples=6000, seed=2)


def prior_of(graph: Graph, plan: CountPlan, weight: float = 1.0) -> CountPrior:
    sizes = len(graph.entities), len(graph.relations)
    return CountPrior(ReleasedCounts.draw(graph.train, *sizes, plan, NoiseSource.research(3)), weight)


class Alone:
    """A prior that ranks without an embedding."""

    def __init__(self, prior: CountPrior) -> None:
        self.prior, self.candidates = prior, prior.released.entities

    def score(self, triples, side, out):
        out.fill(0)
        self.prior.add_scores(triples, side, out)


def mrr(scorer, graph: Graph) -> float:
    return evaluate(scorer, graph, controls=False, threads=1).metrics()["both.realistic.mrr"]


def test_without_noise_and_types_it_ranks_like_popularity(graph):
    exact = Popularity.count(graph.train, len(graph.entities))
    assert mrr(Alone(prior_of(graph, QUIET)), graph) == pytest.approx(mrr(exact, graph), rel=0.02)


def test_scores_are_log_probabilities_times_the_weight(graph):
    for weight in (1.0, 3.0):
        prior = prior_of(graph, CountPlan(0.5, 1.0, 4), weight)
        for side in ("tail", "head"):
            out = np.zeros((20, len(graph.entities)), np.float32)
            prior.add_scores(graph.test[:20], side, out)
            assert np.exp(out / weight, dtype=np.float64).sum(axis=1) == pytest.approx(np.ones(20), rel=1e-4)
            own = graph.test[:20, 2 if side == "tail" else 0]
            assert prior.of_triples(graph.test[:20], side).tolist() == out[np.arange(20), own].tolist()


def test_means_are_closer_to_the_truth_than_noisy_counts(graph):
    size, relations, fall = len(graph.entities), len(graph.relations), np.exp(-1)
    released = ReleasedCounts.draw(graph.train, size, relations, CountPlan(1.0, 1.0, 1), NoiseSource.research(1))
    cells = profile_cells(graph.train.astype(np.int64), size, relations)
    truth = np.bincount(cells.ravel(), minlength=released.profile.size).reshape(-1, size)
    found = np.array([row.full(size) for row in Profile.of(released.profile, size).rows])
    assert np.square(found - truth).mean() < 2 * fall / (1 - fall) ** 2


def test_what_counts_expect_grows_with_what_is_seen_and_with_what_is_popular():
    posterior = Posterior.of(1.0, 3)
    rates, seen = np.geomspace(1e-4, 50, 30), np.arange(3, 60)
    assert (np.diff(posterior.below(rates)) > 0).all()
    assert (np.diff(posterior.seen(seen, np.full(len(seen), 2.0))) > 0).all()
    assert (posterior.below(rates) < posterior.seen(np.full(30, 3), rates)).all()


def test_types_tell_answers_apart():
    """Two groups of heads, told by another relation, with tails of their own: popularity alone cannot know."""
    heads, mark, groups = np.arange(200), np.full(200, 200), np.arange(200) % 2
    marks = np.column_stack((heads, 1 + groups, mark))
    tails = np.column_stack((heads, np.zeros(200, int), 201 + groups))
    names = [str(number) for number in range(203)]
    rows = [(names[h], f"r{r}", names[t]) for h, r, t in np.concatenate((marks, tails[:160])).tolist()]
    graph = Graph.from_names(
        "groups", train=rows, test=[(names[h], f"r{r}", names[t]) for h, r, t in tails[160:].tolist()]
    )
    typed, flat = (mrr(Alone(prior_of(graph, CountPlan(0.5, 0.5, types))), graph) for types in (2, 1))
    assert typed > 1.1 * flat


def test_an_embedding_adds_its_scores_to_those_of_the_prior(graph):
    shape = ModelShape(8)
    scorer = make_scorer("distmult", shape)
    tables = initial_tables(scorer, shape, len(graph.entities), len(graph.relations), np.random.default_rng(1))
    prior = prior_of(graph, CountPlan(0.5, 1.0, 4))
    alone, together = Embedding(scorer, tables, 1.0), Embedding(scorer, tables, 1.0, prior)
    some, triples = np.empty((2, 5, len(graph.entities)), np.float32), graph.test[:5]
    alone.score(triples, "tail", some[0])
    together.score(triples, "tail", some[1])
    prior.add_scores(triples, "tail", some[0])
    assert some[0].tolist() == some[1].tolist()
    assert together.score_triples(triples) == pytest.approx(some[1][np.arange(5), triples[:, 2]], rel=1e-5)


def test_arrays_hold_everything(graph):
    released = prior_of(graph, CountPlan(0.5, 1.0, 4)).released
    again = ReleasedCounts.of_arrays(released.arrays())
    assert {name: array.tolist() for name, array in again.arrays().items()} == {
        name: array.tolist() for name, array in released.arrays().items()
    }
    assert (again.profile.size, again.typed.size) == (released.profile.size, released.typed.size)
    with pytest.raises(RunError, match="noisy counts"):
        ReleasedCounts.of_arrays({"types": released.types})


def test_a_table_in_which_nothing_stands_out_is_no_error():
    nothing = NoisyCounts(12, 1.0, 3, np.empty(0, np.int64), np.empty(0, np.int64))
    released = ReleasedCounts(3, 2, nothing, np.zeros(3, np.int32), 1, nothing)
    out = np.zeros((1, 3), np.float32)
    CountPrior(released, 1.0).add_scores(np.array([[0, 1, 2]], np.int32), "head", out)
    assert out[0] == pytest.approx(np.full(3, np.log(1 / 3)), rel=1e-3)


def test_counts_under_other_numbers_are_the_same_counts() -> None:
    generator = np.random.default_rng(2)
    triples = np.column_stack([generator.integers(0, size, 400) for size in (12, 3, 12)]).astype(np.int32)
    plan = CountPlan(profile_scale=0.3, typed_scale=0.5, types=3)
    drawn = ReleasedCounts.draw(triples, 12, 3, plan, NoiseSource.research(4))
    entities, relations = generator.permutation(12), generator.permutation(3)
    moved = drawn.renumbered(entities, relations)
    back = moved.renumbered(np.argsort(entities), np.argsort(relations))
    for name, array in drawn.arrays().items():
        assert np.array_equal(back.arrays()[name], array), name
    old = dict(zip(drawn.profile.keys.tolist(), drawn.profile.values.tolist(), strict=True))
    for key, value in zip(moved.profile.keys.tolist(), moved.profile.values.tolist(), strict=True):
        block, entity = divmod(key, 12)
        side, relation = divmod(block, 3)
        assert old[(side * 3 + int(relations[relation])) * 12 + int(entities[entity])] == value
    assert moved.types.tolist() == drawn.types[entities].tolist()


def test_two_names_that_were_one_have_the_same_counts() -> None:
    profile = NoisyCounts(6, 1.0, 1, keys=np.array([1, 3, 5]), values=np.array([2, 1, 1]))
    drawn = ReleasedCounts(3, 1, profile, np.zeros(3, np.int32), 1, profile)
    doubled = drawn.renumbered(np.array([0, 1, 1, 2]), np.array([0]))
    assert dict(zip(doubled.profile.keys.tolist(), doubled.profile.values.tolist(), strict=True)) == {
        1: 2,
        2: 2,
        4: 1,
        7: 1,
    }
