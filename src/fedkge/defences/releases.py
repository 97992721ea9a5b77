"""What a client releases once, whichever way, and keeps with its model: noisy counts, or a noisy copy of its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray

from fedkge.base.errors import RunError
from fedkge.defences.counts import CountPrior, ReleasedCounts
from fedkge.defences.noisy_copy import CopyPrior, NoisyCopy

Released: TypeAlias = ReleasedCounts | NoisyCopy
Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def released_of(arrays: Arrays) -> Released:
    """What these arrays of a file were made from; arrays that nothing was made from are a RunError."""
    try:
        return NoisyCopy.of_arrays(arrays) if "cells" in arrays else ReleasedCounts.of_arrays(arrays)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise RunError(f"expected the arrays of a release, got others ({error}); restore the file") from error


def model_arrays(released: Released | None) -> Arrays:
    """The arrays that belong into a model: all that scores need, and no more."""
    if released is None:
        return {}
    return (released.without_answers() if isinstance(released, NoisyCopy) else released).arrays()


def prior_of(arrays: Arrays, weight: float) -> CountPrior | CopyPrior | None:
    """What a model's arrays add to its scores; None where there are none."""
    if not arrays:
        return None
    released = released_of(arrays)
    if isinstance(released, NoisyCopy):
        return CopyPrior(released, released.weight * weight)
    return CountPrior(released, weight)
