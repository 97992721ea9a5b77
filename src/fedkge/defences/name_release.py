"""Which names of a client others may know, under `names = "threshold"`: drawn once, paid first, the rest stays at home.

The order is: release the size (delta follows from it), draw the names in memory, write them to a file, write the
ledger's line that pays and holds the file's fingerprint, and only then use them. A file without its line was never used
and is drawn anew; a line without its file is an error. The file begins with a random salt, so its fingerprint tells
nothing. Proof: docs/proofs/names.md.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedkge.accounting.deltas import chosen_delta
from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError
from fedkge.configuration import Configuration
from fedkge.defences.advance import NAMES, provisional, public_size, source_of
from fedkge.graph import Graph
from fedkge.graph.restricted import mentions, restricted
from fedkge.mechanisms.events import Charge, Names
from fedkge.mechanisms.names import name_event, released_names
from fedkge.store.durable_files import make_folder, write_atomically

FOLDER = "names"
LEAST_NAMES = 2


class NameFiles:
    """Where the released names of clients are kept: a folder, or memory for a run that keeps nothing on disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._memory: dict[str, bytes] = {}

    def write(self, client: str, content: bytes) -> None:
        """Keep the names of a client; they are on the disk when this returns."""
        if self._folder is None:
            self._memory[client] = content
            return
        make_folder(self._folder)
        write_atomically(self._folder / f"{client}.json", content)

    def read(self, client: str) -> bytes | None:
        """What was kept last; None if nothing was."""
        if self._folder is None:
            return self._memory.get(client)
        path = self._folder / f"{client}.json"
        return path.read_bytes() if path.is_file() else None

    def adopt(self, others: NameFiles) -> None:
        """Take over what others keep in memory."""
        for client, content in others._memory.items():
            self.write(client, content)


def event_of(options: Configuration, size: int) -> Names:
    """How names are released under this budget, by the public size."""
    if options.privacy.epsilon is None:
        raise PrivacyError('names = "threshold" is paid with a share of the budget: name --epsilon')
    delta = chosen_delta(options.privacy.delta, size, options.privacy.allow_large_delta)
    return name_event(options.privacy.names_share * options.privacy.epsilon, delta)


def name_threshold(charges: Iterable[Charge]) -> float | None:
    """The threshold of a release of names that these charges pay for; None where they pay for none."""
    return next((charge.event.threshold for charge in charges if isinstance(charge.event, Names)), None)


def assume_names(options: Configuration, client: str, shard: Graph, ledger: Ledger) -> float:
    """Charge a release of names without drawing it, for a preview that its owner alone sees; the threshold."""
    event = event_of(options, public_size(options, client, shard, ledger, number=0))
    ledger.pay_once(provisional(options, client, shard, ledger), NAMES, (Charge(event),), "")
    return event.threshold


def with_released_names(
    options: Configuration,
    client: str,
    shard: Graph,
    ledger: Ledger,
    files: NameFiles,
    number: int = 0,
    kept_as: str = "",
    originals: Mapping[str, str] | None = None,
) -> Graph:
    """The shard with the names that are released, and the triples that mention no other; released and paid for now
    unless they were before. Unless names follow a threshold, the shard as it is.

    `originals` maps the names in the client's own file to those of `shard`; `kept_as` names the file, else the client.
    """
    if options.privacy.names != "threshold":
        return shard
    if NAMES not in ledger.once(client) and not ledger.is_promised(client):
        _release(options, client, shard, ledger, files, number, kept_as or client, originals)
    return restricted(shard, frozenset(_kept(ledger, client, files, kept_as or client)["released"]))


def kept_names(ledger: Ledger, client: str, files: NameFiles, kept_as: str = "") -> frozenset[str] | None:
    """The released names as the client's own file has them; None if none were released."""
    if NAMES not in ledger.once(client):
        return None
    return frozenset(_kept(ledger, client, files, kept_as or client)["entities"])


def _release(
    options: Configuration,
    client: str,
    shard: Graph,
    ledger: Ledger,
    files: NameFiles,
    number: int,
    kept_as: str,
    originals: Mapping[str, str] | None,
) -> None:
    event = event_of(options, public_size(options, client, shard, ledger, number))
    counts = mentions(shard.train, len(shard.entities))
    chosen = released_names(counts, event, source_of(options, number, NAMES))
    names = [name for name, passed in zip(shard.entities, chosen.tolist(), strict=True) if passed]
    found = set(names)
    own = names if originals is None else [name for name, shown in originals.items() if shown in found]
    record = {"salt": secrets.token_hex(32), "released": names, "entities": own}
    content = json.dumps(record, ensure_ascii=False).encode()
    files.write(kept_as, content)
    fingerprint = hashlib.sha256(content).hexdigest()
    ledger.pay_once(provisional(options, client, shard, ledger), NAMES, (Charge(event),), fingerprint)


def _kept(ledger: Ledger, client: str, files: NameFiles, kept_as: str) -> dict[str, Any]:
    content, found = files.read(kept_as), ledger.once(client).get(NAMES)
    if content is None or found is None or hashlib.sha256(content).hexdigest() != found.value:
        raise PrivacyError(
            f"{client}: expected the names that were released, as the ledger has their fingerprint, found "
            f"{'no such file' if content is None else 'others'} in {FOLDER}/; restore the file, or count what was "
            "spent and start a new run elsewhere"
        )
    record: dict[str, Any] = json.loads(content)
    if len(record["released"]) < LEAST_NAMES:
        threshold = next(charge.event.threshold for charge in found.charges if isinstance(charge.event, Names))
        raise PrivacyError(
            f"{client}: {len(record['released'])} names reached the threshold of {threshold:g} mentions, expected at "
            f"least {LEAST_NAMES}: raise epsilon or names-share, give a list of names, or let names follow from triples"
        )
    return record
