"""What a run claims about its privacy: the epsilon that its ledger says was spent."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkge.runs.account import open_account
from fedkge.runs.run import RunDirectory

if TYPE_CHECKING:
    from fedkge.accounting.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Claim:
    """One client's (epsilon, delta), for neighbours that differ in one `unit`.

    `epsilon` is that of the run itself, which is what its audit is held against; `remarks` say what else counts: runs
    that were overwritten, and what makes the claim worth nothing although it may stand against an audit.
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


def claim_of(directory: Path, client: str) -> Claim | None:
    """What the run claims for a client by its ledger; None if it claims nothing, as without a defence or
    after an event whose cost is infinite.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     claim_of(Path(folder), "client-0") is None
    True
    """
    from fedkge.accounting.validity import faults  # noqa: PLC0415 (only defended runs have anything to count)

    ledger = open_account(directory)
    if ledger is None or client not in ledger.clients:
        return None
    promise, spent = ledger.promises[client], ledger.spent(client)
    if not math.isfinite(spent):
        return None
    reason = "; ".join(map(str, faults(promise)))
    remarks = (*([f"NOT PRIVATE: {reason}."] if reason else []), *_overwritten(directory, ledger, client))
    return Claim(spent, promise.delta, promise.neighbours.unit, promise.neighbours, not reason, remarks)


def _overwritten(directory: Path, ledger: Ledger, client: str) -> list[str]:
    from fedkge.accounting.overwritten import overwritten_runs  # noqa: PLC0415

    before = overwritten_runs(ledger, RunDirectory(directory).earlier_ledgers()).get(client)
    if before is None:
        return []
    cost = f"epsilon {before.together:.3f}" if math.isfinite(before.together) else "no guarantee"
    runs = "A run" if before.runs == 1 else f"{before.runs} runs"
    most = "at most " if before.upper_bound else ""
    return [f"{runs} overwritten here spent on the same data: together {most}{cost} (fedkge account {directory})."]
