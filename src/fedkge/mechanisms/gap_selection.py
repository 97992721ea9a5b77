"""What both forms of propose-test-release share, the sound one and the published one: their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedkge.mechanisms.clipping import Clip
from fedkge.mechanisms.gaps import candidates
from fedkge.mechanisms.selection import Built, Rows, Selection, SelectionSettings


@dataclass(frozen=True, slots=True)
class GapSelection(Selection):
    """A selection that guesses a gap in the sorted norms, tests it, and releases the rows above it if the test passes.

    It has no guarantee of its own: how much noise guess and test need is what the two forms disagree on.
    """

    clip: Clip
    batch: int
    gap_multiplier: float = 1.0
    """sigma_r, of the guess (line 2 of Algorithm 2)."""
    test_multiplier: float = 1.0
    """sigma_p, of the test (line 4)."""
    failure: float = 1e-6
    """delta_t, the probability that the test passes without a gap (line 4)."""

    releases_all: ClassVar[bool] = False
    makes_tests: ClassVar[bool] = True

    @classmethod
    def build(cls, settings: SelectionSettings, rows: Rows | None = None) -> Built:  # noqa: ARG003 - drawn per step
        """Guess, test and gradient have the same multiplier."""
        noise = settings.noise
        return cls(settings.clip, settings.batch, noise, noise, settings.failure), noise

    @classmethod
    def check(cls, settings: SelectionSettings) -> None:
        """There must be gaps to choose from."""
        candidates(settings.batch, settings.entities)

    @property
    def made_for(self) -> tuple[Clip, int]:
        """The clip and batch that the bound on gaps holds for."""
        return self.clip, self.batch
