"""What must hold for everything that is chosen by name: one abstract case per kind.

A new model, aggregation or optimiser gets all tests of its kind by a class of a few lines that names it:

    class TestTransE(ModelCase):
        name = "transe"

`test_every_registered_class_has_a_case.py` fails when a registered name has no such class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar


class Case:
    """One kind of thing; pytest collects only subclasses whose name starts with `Test`."""

    name: ClassVar[str]
    """Of the registered thing, as options name it."""


def concrete(case: type[Case]) -> Iterator[type[Case]]:
    """Every class that pytest collects for this case, but for those of extensions: their registries are not ours."""
    for subclass in case.__subclasses__():
        if subclass.__name__.startswith("Test") and not subclass.__module__.startswith("tests.extensions"):
            yield subclass
        yield from concrete(subclass)
