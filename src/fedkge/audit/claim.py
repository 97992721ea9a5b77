"""What a run claims about its privacy: the epsilon that its ledger says was spent."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedkge.federation.run import LEDGER


@dataclass(frozen=True, slots=True)
class Claim:
    """One client's (epsilon, delta), for neighbours that differ in one `unit`."""

    epsilon: float
    delta: float
    unit: str
    neighbours: str

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def claim_of(directory: Path, client: str) -> Claim | None:
    """What the run claims for a client by its ledger; None if it claims nothing, as without a defence or
    after an event whose cost is infinite.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     claim_of(Path(folder), "client-0") is None
    True
    """
    path = directory / LEDGER
    if not path.exists() or path.stat().st_size == 0:
        return None
    from fedkge.accounting.ledger import Ledger  # noqa: PLC0415 (only runs with a defence have anything to count)

    ledger = Ledger.read(path)
    if client not in ledger.clients:
        return None
    promise, spent = ledger.promises[client], ledger.spent(client)
    return Claim(spent, promise.delta, promise.unit, promise.neighbours) if math.isfinite(spent) else None
