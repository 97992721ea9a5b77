"""Names that are made when they are asked for: a vocabulary of millions that takes no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from fedkge.base.short_repr import short_repr


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class NumberedNames(Sequence[str]):
    """Names like "e123", made when they are asked for, so that millions of them take no room.

    >>> names = NumberedNames("e", range(2_000_000))
    >>> len(names), names[123], names.take([5, 7])[1]
    (2000000, 'e123', 'e7')
    """

    prefix: str
    numbers: Sequence[int] | NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[str, ...]: ...
    def __getitem__(self, position: int | slice) -> str | tuple[str, ...]:
        if isinstance(position, slice):
            return tuple(f"{self.prefix}{number}" for number in self.numbers[position])
        return f"{self.prefix}{self.numbers[position]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{number}" for number in self.numbers)

    def take(self, positions: Sequence[int] | NDArray[np.int32]) -> NumberedNames:
        """The names at these positions, as lazily made as all of them."""
        return NumberedNames(self.prefix, np.asarray(self.numbers, dtype=np.int32)[positions])
