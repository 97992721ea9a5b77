"""One client's noisy copy: how its budget is shared out, what the copy costs, and what the promise tells of it."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.accounting.facts import NoisyCopy as CopyFacts
from fedkge.accounting.facts import Payment
from fedkge.defences.budgeted import Budgeted
from fedkge.defences.noisy_copy.measured import measured_elsewhere
from fedkge.defences.noisy_copy.noisy_copy import CopyPlan
from fedkge.defences.noisy_copy.options import copy_options
from fedkge.defences.noisy_copy.presets import FEW_TRIPLES
from fedkge.defences.noisy_copy.rounds import CopyRounds
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge, Geometric, Responses
from fedkge.models.training import Trainer


@dataclass(frozen=True)
class ClientCopy(Budgeted):
    """The copy is drawn and paid for in the first round; no later round costs anything."""

    @property
    def copy(self) -> CopyPlan:
        """How the client copies its graph once, before it trains on the copy alone.

        Counts get their share, answers the rest; both are stretched by `noise`, so that the whole keeps the budget. The
        share may be another where triples are few, by public numbers alone.
        """
        options = copy_options(self.options)
        shares = options.count_share, options.copy_share
        if options.sparse_share and self.triples < FEW_TRIPLES * self.public.entities:
            shares = options.sparse_share, 1 - options.sparse_share
        counts, answers = (share * self.shared_epsilon / self.noise for share in shares)
        return CopyPlan(Geometric.scale_for(counts), answers)

    def charges(self, noise: float, first: bool) -> tuple[Charge, ...]:  # noqa: ARG002 - the copy has its own noise
        """Counts and answers, once."""
        return (Charge(Geometric(self.copy.profile_scale)), Charge(Responses(self.copy.epsilon))) if first else ()

    @property
    def payment(self) -> Payment:
        """The first round pays for all."""
        return Payment.FIRST_ROUND

    def mechanism(self) -> CopyFacts:
        """The scale of the counts' noise and the epsilon of the answers."""
        return CopyFacts(count_scale=self.copy.profile_scale, response_epsilon=self.copy.epsilon)

    @property
    def holds(self) -> str:
        """How much copies of other graphs held, all there is before one is drawn."""
        return measured_elsewhere(self.copy.epsilon)

    def rounds(self, trainer: Trainer, shard: Graph) -> CopyRounds:
        """The rounds on this client's copy."""
        return CopyRounds(self, trainer, shard)
