"""What a run claims about its privacy: the epsilon that its ledger says was spent."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.overwritten import overwritten_runs
from fedkge.accounting.validity import Fault, faults
from fedkge.runs.account import open_account
from fedkge.runs.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class LedgerClaim:
    """The (epsilon, delta) that a ledger claims for one client, for neighbours that differ in one `unit`.

    `epsilon` is that of the run itself: the audit is compared with it. `remarks` name runs that were overwritten, which
    spent on the same data.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    faults: tuple[Fault, ...] = ()
    """Why the claim is no guarantee, even if no audit contradicts it; `fedkge.report` has words for them."""
    remarks: tuple[str, ...] = ()

    @property
    def private(self) -> bool:
        """Whether the claim is a guarantee, if it holds."""
        return not self.faults

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        coded = {"private": self.private, "faults": [str(fault) for fault in self.faults]}
        return {**asdict(self), **coded, "remarks": list(self.remarks)}


def claim_of(directory: Path, client: str) -> LedgerClaim | None:
    """What the run's ledger claims for a client; None without a defence, or after an event of infinite cost.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     claim_of(Path(folder), "client-0") is None
    True
    """
    ledger = open_account(directory)
    if ledger is None or client not in ledger.clients:
        return None
    promise, spent = ledger.promises[client], ledger.spent(client)
    if not math.isfinite(spent):
        return None
    remarks = tuple(_overwritten(directory, ledger, client))
    return LedgerClaim(spent, promise.delta, promise.neighbours.unit, promise.neighbours, faults(promise), remarks)


def _overwritten(directory: Path, ledger: Ledger, client: str) -> list[str]:
    before = overwritten_runs(ledger, RunDirectory(directory).earlier_ledgers()).get(client)
    if before is None:
        return []
    cost = f"epsilon {before.together:.3f}" if math.isfinite(before.together) else "no guarantee"
    runs = "A run" if before.runs == 1 else f"{before.runs} runs"
    most = "at most " if before.upper_bound else ""
    return [f"{runs} overwritten here spent on the same data: together {most}{cost} (fedkge account {directory})."]
