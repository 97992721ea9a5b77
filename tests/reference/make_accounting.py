"""Make accounting.json, the numbers that fedkge's accountants must reproduce: python -m tests.reference.make_accounting

Nothing here imports fedkge. Values come from dp-accounting itself (Renyi orders, privacy-loss distributions), and from
formulas of docs/proofs, evaluated in other ways than the product does: 50 digits, root finding, quadrature.
`CLOSED` takes seconds and is made again by a test; `BY_LIBRARY` takes minutes.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.optimize import brentq

from tests.reference.formulas import (
    bounded_range_profile,
    divergence_of_gaussian,
    divergence_of_test,
    epsilon_of_gaussian,
    losses_of_tests,
    published_epsilon,
    published_gradient,
    published_order_is_allowed,
    published_selection,
)

Row = dict[str, Any]
Section = Callable[[], Iterator[Row]]

FILE = Path(__file__).with_name("accounting.json")
PAPER, SMALL, LARGE = 64 / 90_000, 64 / 40_000, 4096 / 90_000
DELTA, INTERVAL = 1e-5, 1e-4
ORDERS = [float(order) for order in rdp_privacy_accountant.DEFAULT_RDP_ORDERS]


def library_rdp(events: list[tuple[Any, int]], delta: float) -> tuple[float, float]:
    """Epsilon and its order by dp-accounting's Renyi accountant."""
    accountant = rdp_privacy_accountant.RdpAccountant(ORDERS)
    for event, count in events:
        accountant.compose(event, count)
    epsilon, order = accountant.get_epsilon_and_optimal_order(delta)
    return float(epsilon), float(order)


def library_curve(rate: float, multiplier: float, order: float) -> float:
    """One step at one order by dp-accounting."""
    return float(rdp_privacy_accountant.RdpAccountant([order]).compose(sampled(rate, multiplier)).rdp[0])


def sampled(rate: float, *multipliers: float) -> Any:
    gaussians = [dp_event.GaussianDpEvent(float(multiplier)) for multiplier in multipliers]
    return dp_event.PoissonSampledDpEvent(
        rate, gaussians[0] if len(gaussians) == 1 else dp_event.ComposedDpEvent(gaussians)
    )


def library_losses(rate: float, multiplier: float, *, interval: float = INTERVAL, pessimistic: bool = True) -> Any:
    return privacy_loss_distribution.from_gaussian_mechanism(
        multiplier,
        sampling_prob=rate,
        value_discretization_interval=interval,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
    )


def library_pld(rate: float, multiplier: float, steps: int, delta: float, **options: Any) -> float:
    """Epsilon by dp-accounting's privacy-loss distributions."""
    return float(library_losses(rate, multiplier, **options).self_compose(steps).get_epsilon_for_delta(delta))


def poisson_gaussian() -> Iterator[Row]:
    """DPSGD: Renyi accounting, and privacy losses between their optimistic and their pessimistic estimate."""
    for rate, sigma, steps in product((PAPER, SMALL, LARGE), (0.6, 1.0, 2.5), (150, 2500)):
        epsilon, order = library_rdp([(sampled(rate, sigma), steps)], DELTA)
        high = library_pld(rate, sigma, steps, DELTA)
        low = library_pld(rate, sigma, steps, DELTA, pessimistic=False)
        yield {
            "q": rate,
            "sigma": sigma,
            "T": steps,
            "delta": DELTA,
            "eps_dp_accounting_rdp": epsilon,
            "order": order,
            "eps_dp_accounting_pld": high,
            "eps_prv_lower_est_upper": [low, (low + high) / 2, high],
        }


def two_gaussians_same_batch() -> Iterator[Row]:
    """Selection and gradient on one batch are one Gaussian of the joint multiplier."""
    for rate, (first, second), steps in product((PAPER, LARGE), ((1.0, 1.0), (2.0, 0.8), (5.0, 1.5)), (300, 3000)):
        total = float(1 / mpmath.sqrt(mpmath.mpf(first) ** -2 + mpmath.mpf(second) ** -2))
        yield {
            "q": rate,
            "sigma1": first,
            "sigma2": second,
            "sigma_total": total,
            "T": steps,
            "delta": DELTA,
            "eps_dp_accounting_rdp_composed_event": library_rdp([(sampled(rate, first, second), steps)], DELTA)[0],
            "eps_pld_sigma_total": library_pld(rate, total, steps, DELTA),
        }


def per_step_rdp() -> Iterator[Row]:
    """One step of DPSGD: by the library, which rounds up between whole orders, and exactly; and the paper's term."""
    for rate, sigma, order in product((PAPER, LARGE, 0.3), (0.5, 1.0, 2.0), (1.5, 2, 3, 4.5, 8, 32)):
        by_library = library_curve(rate, sigma, order)
        if math.isinf(by_library):  # its series does not converge, and it leaves the order out
            continue
        yield {
            "q": rate,
            "sigma": sigma,
            "alpha": order,
            "rdp_dp_accounting": by_library,
            "rdp_exact": float(divergence_of_gaussian(rate, sigma, order)),
            "as_published_2q2a_over_sigma": float(published_gradient(rate, sigma, order)),
            "published_alpha_allowed": published_order_is_allowed(rate, sigma, order),
        }


def rdp_to_dp() -> Iterator[Row]:
    """From one order to epsilon, by the bound of Canonne, Kamath and Steinke."""
    for order, divergence, delta in product((1.5, 2, 4, 12, 64), (0.05, 0.7, 3.0), (1e-5, 1e-8)):
        a = mpmath.mpf(order)
        epsilon = divergence + mpmath.log1p(-1 / a) - mpmath.log(mpmath.mpf(delta) * a) / (a - 1)
        yield {"alpha": order, "rdp": divergence, "delta": delta, "cks": float(epsilon)}


def gaussian_exact() -> Iterator[Row]:
    """The Gaussian mechanism, from its exact delta."""
    for sigma, delta in product((0.4, 0.8, 1.7, 6.0), (1e-5, 1e-7)):
        yield {"sigma": sigma, "delta": delta, "eps": epsilon_of_gaussian(sigma, delta)}


def sigma_schedule() -> Iterator[Row]:
    """Noise that falls: several multipliers, each for its steps."""
    for rate, first, factor, steps, parts in ((PAPER, 1.1, 0.9, 2000, 4), (LARGE, 2.0, 0.95, 60, 6)):
        schedule = [[first * factor**part, steps] for part in range(parts)]
        losses = [library_losses(rate, sigma).self_compose(count) for sigma, count in schedule]
        total = losses[0]
        for more in losses[1:]:
            total = total.compose(more)
        printed = [
            float(sum(count * published_gradient(rate, sigma, order) for sigma, count in schedule))
            + math.log(1 / DELTA) / (order - 1)
            for order in (2, 3)
        ]
        yield {
            "q": rate,
            "schedule": schedule,
            "delta": DELTA,
            "eps_rdp": library_rdp([(sampled(rate, sigma), count) for sigma, count in schedule], DELTA)[0],
            "eps_pld": float(total.get_epsilon_for_delta(DELTA)),
            "as_published_alpha2_alpha3": printed,
        }


def dp_flames() -> Iterator[Row]:
    """Propose, test, release (docs/proofs/ptr.md) with all noise at 1, and what the paper prints for it."""
    for triples, epochs in ((90_000, 1), (90_000, 10), (40_000, 3), (20_000, 8)):
        rate, steps = 64 / triples, round(epochs * triples / 64)
        rho = mpmath.mpf(9) / 32 + mpmath.mpf(1) / 2 + mpmath.mpf(1) / 2
        curve = [float(steps * divergence_of_test(rate, rho, order)) for order in ORDERS]
        epsilon, order = rdp_privacy_accountant.compute_epsilon(ORDERS, curve, DELTA / 2)
        half, half_order = published_epsilon(rate, steps, DELTA / 2, allowed=True)
        loose, loose_order = published_epsilon(rate, steps, DELTA / 2, allowed=False)
        yield {
            "N": triples,
            "q": rate,
            "T": steps,
            "delta_total": DELTA,
            "delta_t_sound": DELTA / 2 / (steps * rate),
            "sound_rho": float(rho),
            "eps_sound_rdp": float(epsilon),
            "alpha": float(order),
            "eps_sound_pld": losses_of_tests(rate, steps, DELTA / 2, INTERVAL),
            "as_published_eps_delta_half": half,
            "as_published_alpha": half_order,
            "as_published_eps_delta": published_epsilon(rate, steps, DELTA, allowed=True)[0],
            "as_published_eps_ignoring_constraint": loose,
            "as_published_alpha_ignoring_constraint": loose_order,
        }


def published_step_terms() -> Iterator[Row]:
    """The paper's terms of one step."""
    for rate, order in product((PAPER, SMALL, LARGE), (2, 3, 5, 12)):
        yield {
            "q": rate,
            "alpha": order,
            "eps_g": float(published_gradient(rate, 1.0, order)),
            "eps_s": float(published_selection(rate, order)),
        }


def bounded_range() -> Iterator[Row]:
    """The worst profile of a private arg max."""
    for width, epsilon in product((0.4, 1.2, 3.0), (-0.3, 0.0, 0.2, 0.35)):
        yield {"eta": width, "eps": epsilon, "delta": bounded_range_profile(width, epsilon)}


def subsampled_zcdp() -> Iterator[Row]:
    """One step of propose, test, release by orders."""
    for rate, rho, order in product((PAPER, LARGE), (0.3, 0.9, 1.28125), (2, 3, 5.5, 9)):
        divergence = float(divergence_of_test(rate, mpmath.mpf(rho), order))
        yield {"q": rate, "rho": rho, "alpha": order, "rdp": divergence}


def calibrated_sigma() -> Iterator[Row]:
    """The least noise that meets a budget, by root finding on dp-accounting's privacy losses."""
    for rate, steps, epsilon in ((LARGE, 660, 3), (LARGE, 660, 8), (SMALL, 6250, 2), (PAPER, 14_063, 4)):

        def excess(sigma: float, rate: float = rate, steps: int = steps, epsilon: float = epsilon) -> float:
            return library_pld(rate, sigma, steps, DELTA) - epsilon

        sigma = brentq(excess, 0.35, 6.0, xtol=1e-4, rtol=1e-4)
        yield {"q": rate, "T": steps, "delta": DELTA, "eps": epsilon, "sigma": float(sigma)}


def truncated_poisson() -> Iterator[Row]:
    """A batch with a cap, by dp-accounting's own event."""
    for cap in (78, 120):
        losses = privacy_loss_distribution.from_truncated_subsampled_gaussian_mechanism(
            90_000, PAPER, cap, 1.0, value_discretization_interval=INTERVAL
        )
        epsilon = float(losses.self_compose(10_000).get_epsilon_for_delta(DELTA))
        row = {"dataset_size": 90_000, "q": PAPER, "truncated_batch_size": cap, "sigma": 1.0}
        yield {**row, "T": 10_000, "delta": DELTA, "eps_pld": epsilon}


CLOSED: dict[str, Section] = {
    "per_step_rdp": per_step_rdp,
    "rdp_to_dp": rdp_to_dp,
    "gaussian_exact": gaussian_exact,
    "published_step_terms": published_step_terms,
    "bounded_range_profile": bounded_range,
    "subsampled_zcdp_rdp_own": subsampled_zcdp,
}
BY_LIBRARY: dict[str, Section] = {
    "poisson_gaussian": poisson_gaussian,
    "two_gaussians_same_batch": two_gaussians_same_batch,
    "sigma_schedule": sigma_schedule,
    "dp_flames": dp_flames,
    "calibrated_sigma_30_epochs": calibrated_sigma,
    "truncated_poisson": truncated_poisson,
}


def main() -> None:
    """Make every section and write the file."""
    logging.disable(logging.WARNING)  # the library names each order whose series does not converge
    sections: dict[str, list[Row]] = {}
    for name, section in {**CLOSED, **BY_LIBRARY}.items():
        began = time.process_time()
        sections[name] = list(section())
        print(f"{name}: {len(sections[name])} rows, {time.process_time() - began:.1f} s", file=sys.stderr)  # noqa: T201
    FILE.write_text(json.dumps(sections, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
