"""How fedkge compiles: one place for the options of every kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to machine code, cached on disk, free of the GIL, with reductions that may be reordered.

    Fast-math assumes finite numbers: checks for NaN do not belong into a kernel.
    """
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, fastmath=True, error_model="numpy")(function)
    return compiled
