"""Durations as short text."""

from __future__ import annotations


def duration(seconds: float | None) -> str:
    """A duration in seconds as short text.

    >>> duration(None), duration(7.2), duration(67), duration(7300)
    ('-', '7s', '1m07s', '2h01m')
    """
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
