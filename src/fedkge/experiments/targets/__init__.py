"""Target triples: what an attack must tell apart. The design decides the result, so there are five.

A  real training triples of the victim   against  uniform random triples            (plausibility alone separates them)
B  real training triples of the victim   against  its held-out triples              (the strict membership game)
C  random triples put into its training  against  random triples that were left out (canaries; the paper's wording)
D  real training triples of the victim   against  corruptions that fit the relation
R  real triples that a coin left it      against  real triples that a coin took from it before training

Both ends of every target are entities, and its relation is one, that victim and adversary share (R: the victim has).
A non-member is in no client's graph (B: in no client's training triples). All ids are the run's, as in entities.txt
and relations.txt.
"""

from __future__ import annotations

from fedkge.experiments.targets.designs import DESIGNS, Bits, Design, Membership, Targets, tossed
from fedkge.experiments.targets.drawing import COUNT, draw_canaries, draw_targets
from fedkge.experiments.targets.pool import AUXILIARY, Pool, auxiliary_triples, pool_of, run_ids, triple_keys

__all__ = [
    "AUXILIARY",
    "COUNT",
    "DESIGNS",
    "Bits",
    "Design",
    "Membership",
    "Pool",
    "Targets",
    "auxiliary_triples",
    "draw_canaries",
    "draw_targets",
    "pool_of",
    "run_ids",
    "tossed",
    "triple_keys",
]
