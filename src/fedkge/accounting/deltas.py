"""The allowed deltas of a promise, and the warning about a large epsilon, for every command and report."""

from __future__ import annotations

from fedkge.accounting.accountants import check_delta
from fedkge.base.errors import PrivacyError

USUAL_DELTA = 1e-5
LEAST_UNITS = 100
"""Noise hides whether a client has fewer triples than this, so delta is judged as if it had this many."""
LARGE_EPSILON = 10.0


def usual_delta(triples: int) -> float:
    """The delta of a promise, by the client's public number of triples, unless the user gives one.

    >>> usual_delta(5_000), usual_delta(100_000)
    (1e-05, 1e-06)
    """
    return min(USUAL_DELTA, 1 / (10 * max(1, triples)))


def chosen_delta(delta: float | None, triples: int, allow_large: bool = False) -> float:
    """The user's delta, or the usual one; a PrivacyError if it allows to publish one of `triples` triples.

    >>> chosen_delta(None, 100_000), chosen_delta(1e-3, 500)
    (1e-06, 0.001)
    >>> chosen_delta(0.5, 500)
    Traceback (most recent call last):
    ...
    fedkge.base.errors.PrivacyError: delta: expected less than 1/500, one over the public number of triples, got 0.5: \
a mechanism that publishes a random triple would meet it; leave --delta out (then it is 1e-05), or use \
--allow-large-delta
    """
    if delta is None:
        return usual_delta(triples)
    units = max(LEAST_UNITS, triples)
    if check_delta(delta) * units >= 1 and not allow_large:
        raise PrivacyError(
            f"delta: expected less than 1/{units}, one over the public number of triples, got {delta:g}: a mechanism "
            f"that publishes a random triple would meet it; leave --delta out (then it is {usual_delta(triples):g}), "
            "or use --allow-large-delta"
        )
    return delta


def large_epsilon(epsilon: float | None) -> str:
    """One sentence of warning about an epsilon above 10; blank otherwise.

    >>> large_epsilon(8.0), large_epsilon(None)
    ('', '')
    >>> large_epsilon(16.0)[:57]
    'Epsilon 16 is above 10: the guarantee alone rules out alm'
    """
    if epsilon is None or epsilon <= LARGE_EPSILON:
        return ""
    return (
        f"Epsilon {epsilon:g} is above {LARGE_EPSILON:g}: the guarantee alone rules out almost nothing then, so choose "
        "8 or less, or judge the run by attacks and audits as well."
    )
