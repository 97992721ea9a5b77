"""What a run claims about its privacy: the epsilon that its ledger says was spent."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.overwritten import overwritten_runs
from fedkge.accounting.validity import faults
from fedkge.runs.account import open_account
from fedkge.runs.run import RunDirectory


@dataclass(frozen=True, slots=True)
class LedgerClaim:
    """The (epsilon, delta) that a ledger claims for one client, for neighbours that differ in one `unit`.

    `epsilon` is that of the run itself: the audit is compared with it. `remarks` say what else counts: runs that were
    overwritten, and faults that make the claim worthless even if no audit contradicts it.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    private: bool = True
    remarks: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "remarks": list(self.remarks)}


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
    reason = "; ".join(map(str, faults(promise)))
    remarks = (*([f"NOT PRIVATE: {reason}."] if reason else []), *_overwritten(directory, ledger, client))
    return LedgerClaim(spent, promise.delta, promise.neighbours.unit, promise.neighbours, not reason, remarks)


def _overwritten(directory: Path, ledger: Ledger, client: str) -> list[str]:
    before = overwritten_runs(ledger, RunDirectory(directory).earlier_ledgers()).get(client)
    if before is None:
        return []
    cost = f"epsilon {before.together:.3f}" if math.isfinite(before.together) else "no guarantee"
    runs = "A run" if before.runs == 1 else f"{before.runs} runs"
    most = "at most " if before.upper_bound else ""
    return [f"{runs} overwritten here spent on the same data: together {most}{cost} (fedkge account {directory})."]
