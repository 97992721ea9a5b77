"""How privacy-critical kernels are compiled: NaN and infinity keep their meaning, so that a kernel can see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to machine code, cached on disk, free of the GIL, every operation as IEEE 754 says."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def strict_sum(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `strict`, but sums may be reordered, so that they vectorise; NaN still gives NaN."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})(
        function
    )
    return compiled
