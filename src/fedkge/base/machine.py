"""The resources of the machine that this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The number of cores that this process may use. A container or taskset can make it smaller than the machine's.

    >>> available_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
