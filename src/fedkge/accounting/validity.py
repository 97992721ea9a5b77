"""What makes a ledger's numbers worth nothing, or less than they look."""

from __future__ import annotations

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.ledger import FILTERED, Ledger
from fedkge.accounting.promises import COPIED, Promise

SEEDED = "the noise comes from a research seed, and who knows it can take the noise away"
PUBLISHED = "selection {} is the paper's as printed: relations take raw gradients, its epsilon is not sound"


def why_not_private(promise: Promise) -> str:
    """Why nothing is promised, whatever the numbers say; blank where the promise holds.

    >>> why_not_private(Promise("client-0", delta=1e-5, facts={"noise source": "seed 7"}))
    'the noise comes from a research seed, and who knows it can take the noise away'
    >>> why_not_private(Promise("client-0", delta=1e-5, facts={"noise source": "operating system"}))
    ''
    """
    reasons = []
    if str(promise.facts.get("noise source", "")).startswith("seed"):
        reasons.append(SEEDED)
    if str(promise.facts.get("selection", "")).endswith("-published"):
        reasons.append(PUBLISHED.format(promise.facts["selection"]))
    elif not make_accountant(promise.accountant).sound:
        reasons.append(f"the accountant {promise.accountant} is not sound")
    return "; ".join(reasons)


def other_rounds(ledger: Ledger, client: str) -> tuple[int, int] | None:
    """How many rounds the client has paid for and how many were planned, where the two differ and it matters.

    What was spent is a guarantee for a number of rounds that was fixed beforehand. Whoever stops early or goes on
    after a look at results has the budget, and nothing else.
    """
    promise = ledger.promises[client]
    planned = promise.facts.get("rounds")
    paid = len({entry.round for entry in ledger.by_round(client) if entry.round is not None})
    if planned is None or planned == paid or promise.facts.get(FILTERED) or COPIED in promise.facts:
        return None
    return paid, int(planned)
