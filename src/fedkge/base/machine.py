"""What this process may use of the machine."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The cores that this process may run on: fewer than the machine has, in a container or under taskset.

    >>> available_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
