"""What a client releases once, before its promise: above all its number of triples. Paid before it is used.

The order is: draw in memory, write one line that holds the charge and the value, sync it, use the value. Killed before
the line is on the disk, nothing of the draw is left and nobody has seen it, so a new draw costs nothing more. Killed
after, the next start reads the same value. Proof: docs/proofs/size.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fedkge.accounting.deltas import USUAL_DELTA
from fedkge.accounting.facts import Advance, Facts, NameRule
from fedkge.accounting.ledger import Ledger, Promise
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.budgeted import noise_source_of
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge, Size
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.size import noisy_size, size_event
from fedkge.store.data_key import site_key

SIZE, NAMES = "size", "names"
STREAMS = {SIZE: 1, NAMES: 2}
"""Under a research seed each release has a stream of its own, apart from those of rounds, which have shorter keys."""


def public_size(options: Configuration, client: str, shard: Graph, ledger: Ledger, number: int) -> int:
    """The number of triples that others may know: given, released before, or released and paid for now."""
    if options.privacy.public_triples:
        return options.privacy.public_triples
    found = ledger.once(client).get(SIZE)
    if found is not None:
        return int(found.value)
    event = size_event(options.privacy.epsilon)
    size = noisy_size(exact_size(shard), event, source_of(options, number, SIZE))
    ledger.pay_once(provisional(options, client, shard, ledger), SIZE, (Charge(event),), size)
    return size


def assume_exact_size(options: Configuration, client: str, shard: Graph, ledger: Ledger) -> None:
    """Put the exact size where the noisy one will be, for a preview that its owner alone sees; never on disk."""
    if ledger.path is None and not options.privacy.public_triples:
        charges = (Charge(size_event(options.privacy.epsilon)),)
        ledger.pay_once(provisional(options, client, shard, ledger), SIZE, charges, max(1, exact_size(shard)))


def size_deviation(charges: Iterable[Charge]) -> float | None:
    """The standard deviation of the noise on a size that these charges pay for; None where they pay for none."""
    return next((charge.event.deviation for charge in charges if isinstance(charge.event, Size)), None)


def exact_size(shard: Graph) -> int:
    """How many different training triples there are: private.

    >>> exact_size(Graph.from_names("tiny", train=[("a", "r", "b"), ("b", "r", "a")]))
    2
    """
    return len(np.unique(shard.train, axis=0))


def source_of(options: Configuration, number: int, what: str) -> NoiseSource:
    """Fresh secret noise for one release before the promise, or the research seed's own stream for it."""
    if options.privacy.noise_seed is None:
        return NoiseSource.secret()
    return NoiseSource.research(options.privacy.noise_seed, number, 0, STREAMS[what])


def provisional(options: Configuration, client: str, shard: Graph, ledger: Ledger) -> Promise:
    """What is known of a client's promise before anything is released."""
    facts = Facts(
        data=digest_of(client, shard, ledger),
        defence=options.privacy.defence,
        mechanism=Advance(),
        noise_source=noise_source_of(options),
        names=NameRule(options.privacy.names),
    )
    return Promise(
        client, options.privacy.delta or USUAL_DELTA, options.privacy.epsilon, accountant_of(options), facts=facts
    )


def digest_of(client: str, shard: Graph, ledger: Ledger) -> str:
    """A digest of the client's own data under the user's key, by which its holder recognises runs on the same triples.

    Blank where the ledger never stands in a file.
    """
    own = Graph(client, shard.entities, shard.relations, shard.train)
    return site_key().digest((own,)) if ledger.kept else ""


def accountant_of(options: Configuration) -> str:
    """The name of the accountant; what the paper prints can only be counted as it prints it."""
    return chosen_defence(options).accountant_name(options)
