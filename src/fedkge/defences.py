"""Defences by name: what each one sets unless the user says otherwise.

A defence is nothing but options. What it chose stands in the resolved configuration that is saved with the run, so
nothing about a run depends on its defence's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedkge.registry import look_up

Options = Mapping[str, Any]

_PAPER: Options = {"clip": 1.2, "row-clip": 0.8}
"""The clipping bounds that the paper names."""

DEFENCES: dict[str, Options] = {
    "none": {},
    "dpsgd": {**_PAPER, "row-clip": None, "optimiser": "adam", "negatives": 8, "batch-size": 1024},
    "dp-flames": {**_PAPER, "selection": "adafest", "private-negatives": "public", "batch-size": 1024},
    "dp-flames-adaptive": {
        **_PAPER,
        "selection": "adafest",
        "private-negatives": "public",
        "batch-size": 1024,
        "noise-schedule": "decay",
    },
    "recommended": {
        "dimension": 32,
        "batch-size": 4096,
        "local-epochs": 1,
        "negatives": 8,
        "optimiser": "adam",
        "optimiser-state": "kept",
        "learning-rate": 0.02,
        "clip": 0.5,
    },
}

_BY_MODEL: dict[tuple[str, str], Options] = {
    ("recommended", "distmult"): {"normalise": True},
    ("recommended", "complex"): {"normalise": True},
}
"""Where a defence depends on the model: bilinear gradients start near 0.02, far below any clip."""


def with_defence(values: Options) -> dict[str, Any]:
    """The options with what their defence sets, where they do not say otherwise; a budget alone means `recommended`.

    >>> with_defence({"epsilon": 8.0, "batch-size": 512})["batch-size"]
    512
    >>> with_defence({"epsilon": 8.0})["defence"]
    'recommended'
    """
    asked = values.get("epsilon") is not None or values.get("noise") is not None
    name = values.get("defence") or ("recommended" if asked else "none")
    model = str(values.get("model", "transe"))
    return {**look_up(DEFENCES, name, "defence"), **_BY_MODEL.get((name, model), {}), **values, "defence": name}
