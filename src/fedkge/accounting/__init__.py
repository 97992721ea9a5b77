"""What mechanisms cost: accountants, calibration, the durable ledger, and the paper's formulas as published."""

from __future__ import annotations

from fedkge.accounting.accountants import ACCOUNTANTS, Accountant, make_accountant, merged
from fedkge.accounting.calibration import calibrate
from fedkge.accounting.filters import RenyiFilter
from fedkge.accounting.ledger import Entry, Ledger
from fedkge.accounting.owners import epsilon_of_owners, worst_epsilon
from fedkge.accounting.promises import Promise

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Entry",
    "Ledger",
    "Promise",
    "RenyiFilter",
    "calibrate",
    "epsilon_of_owners",
    "make_accountant",
    "merged",
    "worst_epsilon",
]
