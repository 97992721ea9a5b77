"""Figures that may be passed on: how well a released model ranks private held-out triples, paid for once.

The order is the ledger's: the figure is charged, drawn, written down in the ledger, and only then told. So it is drawn
once for each client and split; the same question again is answered from the ledger. A crash between charge and
writing leaves nothing that anybody has seen, and the next call draws for what was paid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedkge.accounting.accountants import make_accountant
from fedkge.accounting.extras import Extra
from fedkge.accounting.figures import PaidMetric, kept_metrics
from fedkge.accounting.ledger import Ledger
from fedkge.api.opening import Data, opened
from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.defences import chosen_defence
from fedkge.evaluation.ranking import rank
from fedkge.graph import Graph, no_triples
from fedkge.mechanisms.events import Charge
from fedkge.mechanisms.metrics import NoisyMean, cost_of, shares_of
from fedkge.mechanisms.noise import NoiseSource
from fedkge.models import Embedding
from fedkge.runs.account import continue_account
from fedkge.runs.directory import SITES, RunDirectory
from fedkge.runs.run import Run

SPLIT = "test"
STREAM = 0x6D72
"""Under a research seed, figures have a stream of their own: no other draw moves."""


def reciprocal_ranks(embedding: Embedding, shard: Graph, split: str = SPLIT) -> np.ndarray[Any, np.dtype[np.float64]]:
    """For each distinct held-out triple, the mean of both sides' reciprocal ranks among all names, unfiltered.

    Each depends on its own triple and on the model alone. (A filter by known triples would make one triple change the
    ranks of many.)
    """
    triples = np.unique(shard.split(split), axis=0)
    if not len(triples):
        return np.empty(0)
    ranking = rank(embedding, triples, no_triples())
    return np.asarray((1 / ranking.tail.realistic + 1 / ranking.head.realistic) / 2)


def release_metrics(path: Path, epsilon: float, data: Data | None = None) -> tuple[PaidMetric, ...]:
    """The figures of every client of a finished run, at `epsilon` each: drawn and paid for now, or kept from before."""
    directory = RunDirectory(path)
    run = opened(path, data=data)
    trained = int(directory.read_model()[1]["round"])
    with directory.locked():
        ledger = _ledger_of(run, directory)
        names = _accounts(run, ledger)
        for name in names.values():
            _check(ledger, name, epsilon)
        for number, (client, name) in enumerate(names.items()):
            _release(run, client, ledger, name, epsilon, (number, trained))
    return kept_metrics(ledger)


def _ledger_of(run: Run, directory: RunDirectory) -> Ledger:
    if not chosen_defence(run.configuration).keeps_ledger:
        raise PrivacyError(
            f"{directory.path}: this run has no defence, so no budget can pay for a figure; exact figures are in the "
            "owner's copy"
        )
    if (directory.path / SITES).exists():
        raise PrivacyError(
            f"{directory.path}: a gathered run has copies of the sites' ledgers, and a site's own would not know of "
            "the figure: release it at each site, on the site's run directory"
        )
    if run.configuration.federation.strategy == "pooled":
        raise PrivacyError(
            f"{directory.path}: in a pooled run nobody has a budget of its own, so no figure can be charged; exact "
            "figures are in the owner's copy"
        )
    return continue_account(directory)


def _accounts(run: Run, ledger: Ledger) -> dict[str, str]:
    """Each client of the run, and its name in the ledger: at a site the client's name is the site's."""
    if len(ledger.clients) != len(run.clients):
        raise PrivacyError(f"expected {len(run.clients)} clients in the ledger, got {', '.join(ledger.clients)}")
    return dict(zip(run.clients, ledger.clients, strict=True))


def _check(ledger: Ledger, name: str, epsilon: float) -> None:
    if not 0 < epsilon < float("inf"):
        raise ConfigurationError(f"--metrics-epsilon: expected a number above 0, got {epsilon}")
    if not make_accountant(ledger.promises[name].accountant).sound:
        raise PrivacyError(f"{name} counts by formulas that are not sound, so a figure's price would mean nothing")
    for extra in ledger.extras(name):
        if extra.name == SPLIT and extra.epsilon != epsilon:
            raise PrivacyError(
                f"{name}: figures of {SPLIT} were paid for with epsilon {extra.epsilon:g}, got {epsilon:g}; a second "
                f"would be another release: ask for {extra.epsilon:g} to see the one that there is"
            )


def _release(run: Run, client: str, ledger: Ledger, name: str, epsilon: float, place: tuple[int, int]) -> None:
    """Charge, draw and keep one client's figure; `place` is its number, and the round of the model."""
    if any(extra.name == SPLIT and extra.value is not None for extra in ledger.extras(name)):
        return
    number, trained = place
    shares = shares_of(reciprocal_ranks(run.embedding(client), run.shards[number]))
    ledger.charge_extra(name, Extra(SPLIT, epsilon, (Charge(cost_of(epsilon)),)))
    seed = run.configuration.privacy.noise_seed
    source = NoiseSource.secret() if seed is None else NoiseSource.research(seed, number, 0, STREAM)
    mean = NoisyMean.release(shares, epsilon, source)
    ledger.keep_extra(name, SPLIT, {"total": mean.total, "number": mean.number, "round": trained})
