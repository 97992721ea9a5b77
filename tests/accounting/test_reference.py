"""Every section of the reference values: PLD to 1 %, Renyi and the published formulas to 1e-6."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedkge.accounting.calibration import calibrate
from fedkge.accounting.pld import PLDAccountant
from fedkge.accounting.privacy_profiles import bounded_range_delta
from fedkge.accounting.published import (
    PublishedAccountant,
    gradient_term,
    order_is_allowed,
    selection_term,
)
from fedkge.accounting.rdp import ORDERS, RDPAccountant, concentration, curve, epsilon_of_curve, sampled_divergence
from fedkge.mechanisms.events import Charge, Gaussian, SampledGaussian, SampledPair, SampledTest
from tests.reference.make_accounting import BY_LIBRARY, CLOSED, FILE

PLD, RDP = PLDAccountant(), RDPAccountant()
FEW = 10
"""Of a section's rows, every so many in the quick tests."""


def steps_of(row: dict) -> list[Charge]:
    return [Charge(SampledGaussian(row["q"], row["sigma"]), row["T"])]


@pytest.mark.parametrize("section", sorted(CLOSED))
def test_the_script_still_makes_what_the_file_holds(section):
    """The formulas; what the library computes takes minutes to make."""
    kept = json.loads(FILE.read_text(encoding="utf-8"))[section]
    for made, row in zip(CLOSED[section](), kept, strict=True):
        assert made == pytest.approx(row, rel=1e-9)


def test_the_file_has_every_section():
    assert set(json.loads(FILE.read_text(encoding="utf-8"))) == {*CLOSED, *BY_LIBRARY}


def test_rdp_of_the_sampled_gaussian(reference):
    for row in reference["poisson_gaussian"]:
        epsilon, order = RDP.epsilon_and_order(steps_of(row), row["delta"])
        assert epsilon == pytest.approx(row["eps_dp_accounting_rdp"], rel=1e-6)
        assert order == pytest.approx(row["order"])


def check_pld(rows):
    for row in rows:
        epsilon = PLD.epsilon(steps_of(row), row["delta"])
        assert epsilon == pytest.approx(row["eps_dp_accounting_pld"], rel=0.01)
        if row["eps_prv_lower_est_upper"]:
            low, _, high = row["eps_prv_lower_est_upper"]
            assert low <= epsilon <= high * 1.01


def test_pld_of_the_sampled_gaussian(reference):
    check_pld(reference["poisson_gaussian"][::FEW])


@pytest.mark.slow
def test_pld_of_the_sampled_gaussian_everywhere(reference):
    check_pld(reference["poisson_gaussian"])


def test_two_gaussians_on_one_batch(reference):
    for number, row in enumerate(reference["two_gaussians_same_batch"]):
        charges = [Charge(SampledPair(row["q"], row["sigma1"], row["sigma2"]), row["T"])]
        assert RDP.epsilon(charges, row["delta"]) == pytest.approx(
            row["eps_dp_accounting_rdp_composed_event"], rel=1e-6
        )
        assert charges[0].event.multiplier == pytest.approx(row["sigma_total"], rel=1e-12)
        if number % FEW == 0:
            assert PLD.epsilon(charges, row["delta"]) == pytest.approx(row["eps_pld_sigma_total"], rel=0.01)


def test_one_step_at_every_order(reference):
    for row in reference["per_step_rdp"]:
        if float(row["alpha"]) in ORDERS:
            found = curve(SampledGaussian(row["q"], row["sigma"]))[ORDERS.index(row["alpha"])]
            assert found == pytest.approx(row["rdp_dp_accounting"], rel=1e-6)
            if "rdp_exact" in row:
                assert found >= row["rdp_exact"] * (1 - 1e-9)
                assert row["alpha"] % 1 or found == pytest.approx(row["rdp_exact"], rel=1e-9)
        printed = gradient_term(row["q"], row["sigma"], row["alpha"])
        assert printed == pytest.approx(row["as_published_2q2a_over_sigma"], rel=1e-6)
        assert order_is_allowed(row["q"], row["sigma"], row["alpha"]) == row["published_alpha_allowed"]


def test_from_an_order_to_epsilon(reference):
    for row in reference["rdp_to_dp"]:
        if float(row["alpha"]) not in ORDERS:
            continue
        one = np.full(len(ORDERS), np.inf)
        one[ORDERS.index(row["alpha"])] = row["rdp"]
        assert epsilon_of_curve(one, row["delta"])[0] == pytest.approx(max(0.0, row["cks"]), rel=1e-6)


def test_the_plain_gaussian(reference):
    for row in reference["gaussian_exact"]:
        assert PLD.epsilon([Charge(Gaussian(row["sigma"]))], row["delta"]) == pytest.approx(row["eps"], rel=0.01)
        steps = [Charge(Gaussian(row["sigma"] * 3)), Charge(SampledGaussian(1, row["sigma"] * 3), 8)]
        assert PLD.epsilon(steps, row["delta"]) == pytest.approx(row["eps"], rel=0.01)


def schedule_of(row: dict) -> list[Charge]:
    return [Charge(SampledGaussian(row["q"], sigma), steps) for sigma, steps in row["schedule"]]


@pytest.mark.slow
def test_schedules_by_privacy_losses(reference):
    for row in reference["sigma_schedule"]:
        assert PLD.epsilon(schedule_of(row), row["delta"]) == pytest.approx(row["eps_pld"], rel=0.01)


def test_schedules(reference):
    short = reference["sigma_schedule"][0]
    assert PLD.epsilon(schedule_of(short), short["delta"]) == pytest.approx(short["eps_pld"], rel=0.01)
    for row in reference["sigma_schedule"]:
        charges = schedule_of(row)
        assert RDP.epsilon(charges, row["delta"]) == pytest.approx(row["eps_rdp"], rel=1e-6)
        printed = [PublishedAccountant().epsilon_at(charges, row["delta"], order) for order in (2, 3)]
        assert printed == pytest.approx(row["as_published_alpha2_alpha3"], rel=1e-6)


def flames(row: dict) -> list[Charge]:
    return [Charge(SampledTest(row["q"], gap=1, test=1, gradient=1, failure=row["delta_t_sound"]), row["T"])]


def test_propose_test_release_by_renyi_orders(reference):
    for row in reference["dp_flames"]:
        charges = flames(row)
        assert concentration(charges[0].event) == pytest.approx(row["sound_rho"])
        epsilon, order = RDP.epsilon_and_order(charges, row["delta_total"])
        assert epsilon == pytest.approx(row["eps_sound_rdp"], rel=1e-6)
        assert order == pytest.approx(row["alpha"])


@pytest.mark.slow
def test_propose_test_release_by_privacy_losses_everywhere(reference):
    check_losses_of_tests(reference["dp_flames"])


def test_propose_test_release_by_privacy_losses(reference):
    check_losses_of_tests(reference["dp_flames"][::3])


def check_losses_of_tests(rows):
    for row in rows:
        epsilon = PLD.epsilon(flames(row), row["delta_total"])
        assert epsilon == pytest.approx(row["eps_sound_pld"], rel=0.01)


def test_the_published_numbers(reference):
    half = PublishedAccountant(delta_split=0.5)
    for row in reference["dp_flames"]:
        charges, delta = flames(row), row["delta_total"]
        epsilon, order = half.epsilon_and_order(charges, delta)
        assert epsilon == pytest.approx(row["as_published_eps_delta_half"], rel=1e-6)
        assert order == row["as_published_alpha"]
        assert PublishedAccountant().epsilon(charges, delta) == pytest.approx(row["as_published_eps_delta"], rel=1e-6)
        epsilon, order = PublishedAccountant(respect_alpha_range=False, delta_split=0.5).epsilon_and_order(
            charges, delta
        )
        assert epsilon == pytest.approx(row["as_published_eps_ignoring_constraint"], rel=1e-6)
        assert order == row["as_published_alpha_ignoring_constraint"]


def test_the_published_terms(reference):
    for row in reference["published_step_terms"]:
        assert gradient_term(row["q"], 1.0, row["alpha"]) == pytest.approx(row["eps_g"], rel=1e-6)
        assert selection_term(row["q"], 1.0, 1.0, row["alpha"]) == pytest.approx(row["eps_s"], rel=1e-6)


def test_the_bounded_range_profile(reference):
    for row in reference["bounded_range_profile"]:
        assert bounded_range_delta(row["eta"], row["eps"]) == pytest.approx(row["delta"], rel=1e-9)


def test_sampled_concentrated_privacy(reference):
    for row in reference["subsampled_zcdp_rdp_own"]:
        assert sampled_divergence(row["q"], row["rho"], row["alpha"]) == pytest.approx(row["rdp"], rel=1e-6)


def check_calibration(rows):
    for row in rows:

        def charges_of(noise, row=row):
            return [Charge(SampledGaussian(row["q"], noise), row["T"])]

        noise = calibrate(charges_of, row["eps"], row["delta"], PLD)
        assert noise == pytest.approx(row["sigma"], rel=0.003)
        assert PLD.epsilon(charges_of(noise), row["delta"]) <= row["eps"]
        assert PLD.epsilon(charges_of(noise / 1.002), row["delta"]) > row["eps"]


def test_calibrated_noise(reference):
    rows = reference["calibrated_sigma_30_epochs"]
    check_calibration([min(rows, key=lambda row: (-row["q"], row["eps"]))])


@pytest.mark.slow
def test_calibrated_noise_everywhere(reference):
    check_calibration(reference["calibrated_sigma_30_epochs"])


def test_a_capped_batch_costs_more(reference):
    """Why batches are never capped: the library's own event for a cap, beside the uncapped step."""
    assert capped_epsilons(reference["truncated_poisson"][:1])[0] > 6 * uncapped_epsilon(reference)


@pytest.mark.slow
def test_caps_far_above_the_mean_cost_little(reference):
    assert capped_epsilons(reference["truncated_poisson"])[-1] == pytest.approx(uncapped_epsilon(reference), rel=0.01)


def uncapped_epsilon(reference: dict) -> float:
    row = reference["truncated_poisson"][0]
    return PLD.epsilon(steps_of(row), row["delta"])


def capped_epsilons(rows: list[dict]) -> list[float]:
    from dp_accounting.pld.privacy_loss_distribution import from_truncated_subsampled_gaussian_mechanism  # noqa: PLC0415

    capped = []
    for row in rows:
        size, cap = row["dataset_size"], row["truncated_batch_size"]
        losses = from_truncated_subsampled_gaussian_mechanism(
            size, row["q"], cap, row["sigma"], value_discretization_interval=2e-4
        )
        capped.append(losses.self_compose(row["T"]).get_epsilon_for_delta(row["delta"]))
        assert capped[-1] == pytest.approx(row["eps_pld"], rel=0.01)
    return capped
