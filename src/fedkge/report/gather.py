"""From a run directory to the document: files in, one value out."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

from fedkge import __version__
from fedkge.accounting.validity import faults
from fedkge.audit.metrics import LEVEL
from fedkge.configuration import OPTIONS, Configuration, Mark, kebab
from fedkge.report.document import (
    FORMAT,
    Attacks,
    Audit,
    Copy,
    Document,
    Exposed,
    Method,
    PaidFigure,
    RunFacts,
    Utility,
)
from fedkge.report.explanations import figure_texts
from fedkge.report.measured import gather_attacks, gather_audit, gather_exposed, targets_seed
from fedkge.report.promised import gather_claim, gather_paid, gather_spending
from fedkge.report.reading import fingerprints
from fedkge.report.utility import gather_utility
from fedkge.report.verdict import decide, promise_alone
from fedkge.report.wording import IN_OWNERS_COPY, NO_FIGURE_PAID, SHAREABLE_LIMITS, limits, seed_note
from fedkge.runs.account import open_account
from fedkge.runs.directory import RunDirectory, check_has_data
from fedkge.runs.released import is_defended
from fedkge.runs.run import scorer_of

LIBRARIES = ("numpy", "numba", "scipy", "dp-accounting")


def gather(run: Path, copy: Copy = "shareable", beside: Sequence[Path] = ()) -> Document:
    """Everything that the report says about a run, from the files in its directory alone.

    The shareable copy reads the configuration, the ledger and the copies that clients released, and nothing else.
    """
    configuration, provenance = RunDirectory(run).read_configuration()
    check_has_data(run, provenance)
    ledger = open_account(run)
    claim, spending = gather_claim(run, ledger, configuration), gather_spending(ledger, configuration)
    measured = _measured(run, configuration, beside) if copy == "for-owner" else NOTHING_MEASURED
    audit, attacks, utility, exposed = measured
    utility = _with_paid(utility, gather_paid(ledger), copy)
    return Document(
        format=FORMAT,
        copy=copy,
        run=_facts(run, configuration),
        verdict=decide(attacks.rows, claim, audit, attacks.level)
        if copy == "for-owner"
        else promise_alone(claim, void=ledger is not None and any(map(faults, ledger.promises.values()))),
        claim=claim,
        attacks=attacks,
        audit=audit,
        spending=spending,
        utility=utility,
        exposed=exposed,
        figures=figure_texts(attacks, claim, audit, spending, utility),
        method=_method(run, configuration, provenance, ledger is not None, copy),
        limits=limits(configuration) if copy == "for-owner" else SHAREABLE_LIMITS,
    )


Measured: TypeAlias = tuple[Audit, Attacks, Utility, Exposed]

NOTHING_MEASURED: Measured = (
    Audit(IN_OWNERS_COPY, None, 0, 0, None, None, None, 0, (), None, None, "", "", ()),
    Attacks(IN_OWNERS_COPY, LEVEL, (), (), (), ()),
    Utility(NO_FIGURE_PAID, None, (), None, ""),
    Exposed(IN_OWNERS_COPY, 0.0, 0, 0, (), 0),
)
"""What a shareable copy says about every measurement on private triples, measured or not."""


def _measured(run: Path, configuration: Configuration, beside: Sequence[Path]) -> Measured:
    """What was computed from private triples and not paid for: for the owner only."""
    audit = gather_audit(run)
    return audit, gather_attacks(run, audit), gather_utility(run, configuration, beside), gather_exposed(run)


def _with_paid(utility: Utility, paid: tuple[PaidFigure, ...], copy: Copy) -> Utility:
    """Add the figures that were paid for; a shareable copy has no others."""
    return replace(utility, paid=paid, missing="" if paid and copy == "shareable" else utility.missing)


def _facts(run: Path, configuration: Configuration) -> RunFacts:
    return RunFacts(
        name=run.resolve().name,
        data=_shown("data", configuration.data.source),
        model=scorer_of(configuration).name,
        dimension=configuration.model.dimension,
        clients=configuration.data.clients,
        strategy=configuration.federation.strategy,
        defence=configuration.privacy.defence,
        defended=is_defended(configuration),
        rounds=configuration.training.rounds,
        victim=configuration.experiment.victim,
        adversary=configuration.experiment.adversary,
    )


def _method(run: Path, configuration: Configuration, provenance: dict[str, Any], defended: bool, copy: Copy) -> Method:
    changed = configuration.changed_options()
    return Method(
        seed=configuration.experiment.seed,
        targets_seed=targets_seed(run) if copy == "for-owner" else None,
        noise_seed=configuration.privacy.noise_seed,
        seed_note=seed_note(configuration.privacy.noise_seed, defended),
        versions=(
            ("fedkge that trained", str(provenance.get("fedkge", "unknown"))),
            ("fedkge that wrote this", __version__),
            ("Python", platform.python_version()),
            *((name, _version(name)) for name in LIBRARIES),
        ),
        configuration_hash=str(provenance.get("configuration", "")),
        configuration=tuple((kebab(key), _shown(key, value)) for key, value in changed.items()),
        files=fingerprints(run) if copy == "for-owner" else (),
        notice=str(provenance.get("notice" if copy == "for-owner" else "acknowledgement", "")),
    )


def _shown(key: str, value: Any) -> str:
    return Path(value).name if OPTIONS[key].has(Mark.IS_PATH) and isinstance(value, str) else str(value)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
