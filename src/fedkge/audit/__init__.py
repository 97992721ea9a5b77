"""Audit: how well attacks do, and how much epsilon must have been spent for that; numbers in, numbers out.

Only `run_audit`, which gets its numbers from a recorded run, knows what a run is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedkge.audit.bound import ceiling, epsilon_lower_bound, p_value
from fedkge.audit.gaussian_bound import gaussian_epsilon, gaussian_lower_bound
from fedkge.audit.guesses import AuditResult, Finding, audit, right_guesses

if TYPE_CHECKING:
    from fedkge.experiments.recorded_audit import RunAudit, run_audit

__all__ = [
    "AuditResult",
    "Finding",
    "RunAudit",
    "audit",
    "ceiling",
    "epsilon_lower_bound",
    "gaussian_epsilon",
    "gaussian_lower_bound",
    "p_value",
    "right_guesses",
    "run_audit",
]


def __getattr__(name: str) -> Any:
    """Runs and attacks are imported only by who audits a run; the attacks themselves use this room's metrics."""
    if name not in ("RunAudit", "run_audit"):
        raise AttributeError(f"module 'fedkge.audit' has no attribute {name!r}")
    from fedkge.audit import recorded  # noqa: PLC0415

    return getattr(recorded, name)
