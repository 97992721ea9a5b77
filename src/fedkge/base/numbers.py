"""How numbers are written in sentences, tables and pages: one rule each, so that a number looks the same everywhere."""

from __future__ import annotations

import math

TINY = 1e-7
"""8.0 must not become 8.01 because a computer holds it as 8.000000000000002."""
WHOLE = 1e9
"""From here on decimals say nothing; a file that was tampered with may hold such numbers."""


def share(value: float | None) -> str:
    """A number between 0 and 1: AUC, F1, MRR.

    >>> share(2 / 3), share(None)
    ('0.667', 'none')
    """
    return "none" if value is None else f"{value:.3f}"


def signed(value: float) -> str:
    """A difference of shares.

    >>> signed(-0.0123), signed(0.2)
    ('-0.012', '+0.200')
    """
    return f"{value:+.3f}"


def percent(value: float) -> str:
    """A share in percent. It says 0 or 100 only of exactly that: near 1 it has as many digits as it needs.

    >>> percent(0.881), percent(0.97), percent(0.0), percent(1.0), percent(0.00004), percent(0.99997)
    ('88.1 %', '97 %', '0 %', '100 %', 'less than 0.1 %', '99.997 %')
    """
    if 0 < value < 0.0005:
        return "less than 0.1 %"
    if 0.9995 <= value < 1:
        return f"{100 * value:.{math.ceil(-math.log10(1 - value)) - 2}f} %"
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def epsilon(value: float | None) -> str:
    """A privacy budget, or what was spent at most: two decimals, rounded up, so that it never promises more.

    >>> epsilon(8.0), epsilon(3.481), epsilon(None)
    ('8', '3.49', 'unbounded')
    """
    if value is None or math.isinf(value):
        return "unbounded"
    return _two_decimals(value if value >= WHOLE else math.ceil(100 * value - TINY) / 100)


def at_least(value: float) -> str:
    """A lower bound: rounded down, so that it never says more than was shown.

    >>> at_least(3.489), at_least(0.0), at_least(1e15)
    ('3.48', '0', '1e+15')
    """
    return _two_decimals(value if value >= WHOLE else math.floor(100 * value + TINY) / 100)


def _two_decimals(value: float) -> str:
    return f"{value:g}" if value >= WHOLE else f"{value:.2f}".rstrip("0").rstrip(".")


def small(value: float) -> str:
    """A tiny probability such as delta.

    >>> small(1e-5), small(0.05)
    ('0.00001', '0.05')
    """
    return f"{value:.10f}".rstrip("0") if value >= 1e-7 else f"{value:.2g}"


def count(value: int) -> str:
    """A whole number.

    >>> count(12345)
    '12,345'
    """
    return f"{value:,}"


def finite(value: float) -> float | None:
    """A number for JSON, which knows no infinity; an epsilon of null means that nothing is guaranteed.

    >>> finite(8.0), finite(math.inf)
    (8.0, None)
    """
    return value if math.isfinite(value) else None
