"""The rounds of a client that trains on a noisy copy of its graph."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import PrivacyError
from fedkge.defences.defence import Advance
from fedkge.defences.noisy_copy.noisy_copy import NoisyCopy, cells_of, held_out
from fedkge.defences.noisy_copy.weighing import weigh
from fedkge.defences.plain_training import train_plainly
from fedkge.defences.release import Release
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models.training import Trainer

if TYPE_CHECKING:
    from fedkge.defences.noisy_copy.client import ClientCopy

LOG = logging.getLogger("fedkge.copy")


class CopyRounds:
    """Draws the copy before the first round, and trains every round on what it believes of it.

    After the copy is drawn nothing here looks at the client's triples, so rounds cost nothing more. What is believed
    follows the model as it gets better.
    """

    def __init__(self, defence: ClientCopy, trainer: Trainer, shard: Graph) -> None:
        self.defence = defence
        self._trainer, self._shard = trainer, shard
        self.released: Release | None = None
        """The copy, from the first round on."""
        self._warned = False

    @property
    def tests(self) -> dict[str, int]:
        """A copy makes no tests."""
        return {}

    def lasting(self) -> dict[str, NDArray[Any]]:
        """Nothing but the copy outlives a round."""
        return {}

    def charges(self, served: int, validations: Sequence[float]) -> tuple[Charge, ...]:  # noqa: ARG002
        """What the next round costs: the copy, if it is not drawn yet."""
        return self.defence.charges(self.defence.noise, first=self.released is None)

    def draw(self, source: NoiseSource) -> bool:
        """Draw the copy, if it is not there yet; True if it has to be kept now."""
        if self.released is not None:
            return False
        sizes = len(self._shard.entities), len(self._shard.relations)
        self.released = NoisyCopy.draw(self._shard.train, *sizes, self.defence.copy, source)
        return True

    def train(
        self,
        served: int,
        validations: Sequence[float],  # noqa: ARG002
        source: NoiseSource,  # noqa: ARG002
        generator: np.random.Generator,
        advance: Advance,
    ) -> None:
        """Train a round on the copy that is drawn, kept and paid for."""
        if not isinstance(self.released, NoisyCopy):
            raise PrivacyError("expected a noisy copy in the checkpoint, got counts or nothing")
        model = self._trainer.embedding if served > 1 else None
        triples = self.released.believed(model, generator)
        LOG.info("%d of %d answers are believed", len(triples), len(self.released.cells))
        taught = triples[~held_out(cells_of(triples, self.released.entities))]
        if len(taught):
            train_plainly(self._trainer, taught, self.defence.options, generator, advance)
        elif not self._warned:
            self._warned = True
            LOG.warning(
                "%s: no triple is more likely true than false at this epsilon, so nothing is trained and the model "
                "uses counts only; a larger epsilon would train it (said once)",
                self._shard.name,
            )
        weight = weigh(self.released, self._trainer.embedding, triples, generator)
        LOG.info("counts weigh %g", weight)
        self.released = replace(self.released, weight=weight)

    def validated(self, before: tuple[float, ...], served: int) -> tuple[float, ...]:  # noqa: ARG002
        """A copy follows no validation."""
        return before
