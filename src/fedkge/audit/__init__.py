"""Audit: how well attacks do, and how much epsilon must have been spent for that. Numbers in, numbers out."""

from fedkge.audit.bound import ceiling, epsilon_lower_bound, p_value
from fedkge.audit.gaussian_bound import gaussian_epsilon, gaussian_lower_bound
from fedkge.audit.guesses import AuditResult, Finding, audit, right_guesses

__all__ = [
    "AuditResult",
    "Finding",
    "audit",
    "ceiling",
    "epsilon_lower_bound",
    "gaussian_epsilon",
    "gaussian_lower_bound",
    "p_value",
    "right_guesses",
]
