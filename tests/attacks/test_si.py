"""SI against loops over its formulas; the published clustering against all pairs in memory."""

from __future__ import annotations

from dataclasses import replace
from math import atan2, cos, pi, sin, sqrt

import numpy as np
import pytest

from fedkge.attacks import make_attack
from fedkge.attacks.si import SILink
from fedkge.attacks.si_published import (
    SIPublished,
    concentrated,
    k_means,
    rotations,
    spread_of_differences,
    spread_of_rotations,
    type_matches,
    unit_rows,
)
from fedkge.attacks.structure import circular_median, estimate_relations
from fedkge.base.errors import ConfigurationError
from fedkge.models import make_scorer
from tests.attacks import Pieces, area_under_curve, federation, random_rounds, shape_of, twin, view_of

TRIPLES = np.array([[0, 0, 1], [2, 1, 3], [4, 2, 4], [5, 0, 8]], np.int32)
AUXILIARY = np.array([[0, 0, 2], [1, 0, 3], [4, 0, 5], [6, 1, 7], [8, 1, 1], [3, 2, 5], [7, 2, 0], [2, 2, 6]], np.int32)


def complex_row(row: np.ndarray) -> list[complex]:
    half = len(row) // 2
    return [complex(row[k], row[k + half]) for k in range(half)]


@pytest.mark.parametrize("norm", [1, 2])
def test_transe_scores_are_distances_from_the_median_difference(norm: int) -> None:
    rounds = random_rounds("transe", norm)
    upload = rounds[-1].upload.astype(np.float64)
    view = view_of("server", make_scorer("transe", shape_of("transe", norm, 4)), rounds, auxiliary=AUXILIARY)
    expected = []
    for head, relation, tail in TRIPLES:
        distance = 0.0
        for k in range(4):
            centre = np.median([upload[t, k] - upload[h, k] for h, r, t in AUXILIARY if r == relation])
            distance += abs(upload[tail, k] - upload[head, k] - centre) ** norm
        expected.append(-(distance ** (1 / norm)))
    np.testing.assert_allclose(make_attack("si-centres").score(view, TRIPLES), expected, rtol=1e-4)


def test_rotate_scores_are_distances_after_turning_by_the_median_phase() -> None:
    rounds = random_rounds("rotate")
    upload = rounds[-1].upload
    view = view_of("server", make_scorer("rotate", shape_of("rotate", 1, 4)), rounds, auxiliary=AUXILIARY)
    expected = []
    for head, relation, tail in TRIPLES:
        distance = 0.0
        for k in range(4):
            pairs = [(complex_row(upload[h])[k], complex_row(upload[t])[k]) for h, r, t in AUXILIARY if r == relation]
            phases = [atan2((t / h).imag, (t / h).real) for h, t in pairs]
            mean = atan2(sum(sin(phase) for phase in phases), sum(cos(phase) for phase in phases))
            turned = sorted((phase - mean + pi) % (2 * pi) - pi for phase in phases)
            centre = mean + (turned[(len(turned) - 1) // 2] + turned[len(turned) // 2]) / 2
            turn = complex(cos(centre), sin(centre))
            distance += abs(complex_row(upload[head])[k] * turn - complex_row(upload[tail])[k])
        expected.append(-distance)
    np.testing.assert_allclose(make_attack("si-centres").score(view, TRIPLES), expected, rtol=1e-4)


def test_rotate_centres_find_planted_phases_across_the_seam_and_despite_outliers() -> None:
    generator = np.random.default_rng(2)
    scorer = make_scorer("rotate", shape_of("rotate"))
    planted = np.array([pi - 0.01, -pi + 0.02, 0.3])
    heads = generator.normal(size=(21, 3)) + 1j * generator.normal(size=(21, 3))
    tails = heads * np.exp(1j * (planted + generator.normal(scale=0.05, size=(21, 3))))
    tails[:4] *= np.exp(1j * generator.uniform(-pi, pi, size=(4, 3)))
    rows = np.concatenate([np.concatenate([z.real, z.imag], axis=1) for z in (heads, tails)]).astype(np.float32)
    auxiliary = np.array([[i, 0, 21 + i] for i in range(21)], np.int32)
    phases = estimate_relations(scorer, rows, auxiliary)[0] * pi / scorer.phase_range
    np.testing.assert_array_less(np.abs(np.angle(np.exp(1j * (phases - planted)))), 0.1)
    same = circular_median(np.full((5, 2), -pi))
    np.testing.assert_allclose(np.cos(same), -1.0)


@pytest.mark.parametrize("model", ["distmult", "complex"])
def test_bilinear_relations_are_directions_of_the_scores_slope(model: str) -> None:
    upload = random_rounds(model)[-1].upload
    scorer, mean = make_scorer(model, shape_of(model, 1, 4)), upload.mean(axis=0)
    directions = estimate_relations(scorer, upload, AUXILIARY)
    for relation in range(3):
        total = np.zeros(upload.shape[1])
        for head, _, tail in AUXILIARY[AUXILIARY[:, 1] == relation]:
            for k in range(4):
                if model == "distmult":
                    total[k] += upload[head, k] * (upload[tail, k] - mean[k])
                else:
                    product = complex_row(upload[head])[k].conjugate() * complex_row(upload[tail] - mean)[k]
                    total[[k, k + 4]] += product.real, product.imag
        np.testing.assert_allclose(directions[relation], total / np.linalg.norm(total), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["transe", "rotate"])
def test_links_and_types_come_from_the_nearest_centre(model: str) -> None:
    rounds, shape = random_rounds(model), shape_of(model, 1, 4)
    scorer = make_scorer(model, shape)
    view = view_of("server", scorer, rounds, auxiliary=AUXILIARY[AUXILIARY[:, 1] != 1])
    centres = estimate_relations(scorer, rounds[-1].upload, view.auxiliary)
    links, types = SILink().infer(view, TRIPLES)
    for place, (head, _, tail) in enumerate(TRIPLES):
        scores = {r: twin(model, shape, rounds[-1].upload, centres, (head, r, tail)) - shape.margin for r in (0, 2)}
        assert types[place] == max(scores, key=scores.__getitem__)
        np.testing.assert_allclose(links[place], max(scores.values()), rtol=1e-4)
    np.testing.assert_array_equal(make_attack("si-link").score(view, TRIPLES), links)


def test_collusion_uses_the_clients_relation_rows() -> None:
    rounds, shape = random_rounds("transe"), shape_of("transe", 1, 4)
    view = view_of("collusion", make_scorer("transe", shape), rounds)
    expected = [twin("transe", shape, rounds[-1].upload, rounds[-1].relations, t) - shape.margin for t in TRIPLES]
    np.testing.assert_allclose(make_attack("si-collusion").score(view, TRIPLES), expected, rtol=1e-4)


def test_auxiliary_triples_outside_the_upload_do_not_count() -> None:
    rounds = random_rounds("transe")
    scorer = make_scorer("transe", shape_of("transe", 1, 4))
    upload = rounds[-1].upload.copy()
    upload[6:8] = np.nan
    kept = [i for i, (h, _, t) in enumerate(AUXILIARY) if not {int(h), int(t)} & {6, 7}]
    np.testing.assert_array_equal(
        estimate_relations(scorer, upload, AUXILIARY), estimate_relations(scorer, upload, AUXILIARY[kept])
    )
    with pytest.raises(ConfigurationError, match="none of the 1 auxiliary triples"):
        estimate_relations(scorer, upload, AUXILIARY[3:4])


@pytest.mark.parametrize("model", ["distmult", "complex"])
def test_bilinear_models_are_refused_with_the_reason(model: str) -> None:
    fed = federation(model)
    for name in ("si-centres", "si-link", "si-published"):
        with pytest.raises(ConfigurationError, match=r"two entity rows determine.*upload-difference works on all"):
            make_attack(name).score(fed.view("server"), fed.canaries)


def candidates(model: str, upload: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Every ordered pair of different entities and its relation candidate."""
    pairs = [(h, t) for h in range(len(upload)) for t in range(len(upload)) if h != t]
    rows = []
    for head, tail in pairs:
        if model == "transe":
            rows.append(upload[tail] - upload[head])
        else:
            phases = [
                np.angle(t / h) for h, t in zip(complex_row(upload[head]), complex_row(upload[tail]), strict=True)
            ]
            rows.append([cos(p) for p in phases] + [sin(p) for p in phases])
    return pairs, np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("model", ["transe", "rotate"])
def test_spread_equals_a_pass_over_all_pairs_in_memory(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedkge.attacks.si_published.BLOCK_NUMBERS", 40)
    upload = random_rounds(model)[-1].upload
    _, rows = candidates(model, upload.astype(np.float64))
    centres = np.concatenate([rows[[3, 20, 41, 60]], np.full((1, rows.shape[1]), 50.0)])
    apart = ((rows[:, None, :] - centres) ** 2).sum(axis=2)
    nearest = apart.argmin(axis=1)
    expected = [apart[nearest == c, c].mean() if (nearest == c).sum() > 1 else np.inf for c in range(5)]
    if model == "transe":
        spread = spread_of_differences(upload, centres)
    else:
        spread = spread_of_rotations(unit_rows(upload), centres, np.arange(len(upload)))
    np.testing.assert_allclose(spread, expected, rtol=1e-3)


@pytest.mark.parametrize("model", ["transe", "rotate"])
def test_published_scores_equal_the_three_steps(model: str) -> None:
    rounds = random_rounds(model)
    upload = rounds[-1].upload.astype(np.float64)
    scorer, attack = make_scorer(model, shape_of(model, 1, 4)), SIPublished()
    view = view_of("server", scorer, rounds, auxiliary=AUXILIARY)
    targets = np.concatenate([TRIPLES, AUXILIARY[:2]])
    scores = attack.score(view, targets)
    centres, spread = attack.cluster(scorer, rounds[-1].upload, clusters=6)
    pairs, rows = candidates(model, upload)
    trusted = sorted(range(6), key=lambda c: spread[c])[:3]
    for score, (head, relation, tail) in zip(scores, targets, strict=True):
        candidate = rows[pairs.index((head, tail))] if head != tail else np.zeros(rows.shape[1])
        if head == tail and model == "rotate":
            candidate[:4] = 1.0
        apart = [sqrt(((candidate - centre) ** 2).sum()) for centre in centres]
        near, other = min(apart[c] for c in trusted), min(apart[c] for c in range(6) if c not in trusted)
        typed = any(r == relation and h == head for h, r, _ in AUXILIARY)
        typed = typed and any(r == relation and t == tail for _, r, t in AUXILIARY)
        np.testing.assert_allclose(score, (other - near) / (other + near) - (0 if typed else 2), rtol=1e-3, atol=1e-3)


def test_published_scores_find_links_that_share_one_difference() -> None:
    """60 pairs with exactly one difference among scattered entities: the published intuition, where it holds."""
    generator = np.random.default_rng(5)
    heads = generator.normal(size=(60, 8)) * 0.02
    rows = np.concatenate(
        [heads, heads + 3.0 + generator.normal(size=(60, 8)) * 0.02, generator.normal(size=(20, 8)) * 5]
    )
    members = np.array([[i, 0, 60 + i] for i in range(60)], np.int32)
    others = np.array([[120 + i % 20, 0, i] for i in range(60)], np.int32)
    targets = np.concatenate([members, others])
    view = view_of(
        "server",
        make_scorer("transe", shape_of("transe")),
        [Pieces(1, None, rows.astype(np.float32))],
        auxiliary=targets,
    )
    auxiliary = targets.copy()
    auxiliary[:, 1] = np.arange(len(targets)) % 4
    view = replace(view, auxiliary=np.concatenate([targets, auxiliary]))
    scores = SIPublished(seed=1).score(view, targets)
    assert area_under_curve(scores, np.arange(120) < 60) > 0.9


def test_the_seed_decides_and_the_sample_may_be_small() -> None:
    fed = federation("transe")
    view = fed.view("server")
    first, again = (SIPublished(seed=4, sample=100).score(view, fed.canaries) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, SIPublished(seed=5, sample=100).score(view, fed.canaries))


def test_too_few_pairs_for_the_clusters_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="7 clusters need as many pairs of entities, got 6"):
        SIPublished().cluster(make_scorer("transe", shape_of("transe")), np.eye(3, dtype=np.float32), clusters=7)


def test_pieces_of_the_clustering() -> None:
    assert concentrated(np.array([np.inf, 1.0])).tolist() == [False, True]
    assert type_matches(TRIPLES, AUXILIARY[:0]).tolist() == [False] * 4
    far = np.repeat(np.eye(3) * 10, 5, axis=0)
    centres = k_means(far, 3, np.random.default_rng(0))
    assert centres.shape == (3, 3)
    assert np.isfinite(centres).all()
    units = unit_rows(np.zeros((2, 4), np.float32))
    assert rotations(units, np.array([[0, 1]])).tolist() == [[1.0, 1.0, 0.0, 0.0]]


@pytest.mark.slow
def test_all_pairs_of_7000_entities_stay_under_two_gigabytes() -> None:
    import resource  # noqa: PLC0415 - not on every system

    rows = np.random.default_rng(0).normal(size=(7000, 128)).astype(np.float32)
    _, spread = SIPublished().cluster(make_scorer("transe", shape_of("transe", 1, 128)), rows, clusters=474)
    assert np.isfinite(spread).sum() > 200
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2e6
