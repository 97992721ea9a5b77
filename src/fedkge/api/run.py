"""The public Run: a trained federation, with everything that can be done with it as methods."""

from __future__ import annotations

from dataclasses import fields
from typing import Self

from fedkge.api import accounts, attacks, audits, budgets, comparing, exports, predictions, reports
from fedkge.runs import run as runs


class Run(runs.Run):
    """A finished (or loaded) run. Its methods are the functions of `fedkge` that take a run.

    >>> import fedkge as fk
    >>> run = fk.train(fk.synthetic_graph(60, 4, 400, seed=1), rounds=1, dimension=8, negatives=8)
    >>> run
    Run of synthetic: TransE, 1 client, fede, 1 round; no defence; in memory
    """

    __slots__ = ()

    account = accounts.account
    attack = attacks.attack
    audit = audits.audit_run
    compare = comparing.compare
    export = exports.export
    predict = predictions.predict
    remaining = budgets.remaining
    report = reports.report

    @classmethod
    def of(cls, run: runs.Run) -> Self:
        """The same run with these methods."""
        return cls(**{one.name: getattr(run, one.name) for one in fields(run)})
