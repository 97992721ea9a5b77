"""From a run directory to the document: files in, one value out."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fedkge import __version__
from fedkge.configuration import Configuration
from fedkge.federation.run import RunDirectory, check_has_data
from fedkge.report.document import FORMAT, Copy, Document, Method, RunFacts
from fedkge.report.explanations import figure_texts
from fedkge.report.measured import gather_attacks, gather_audit, gather_exposed, targets_seed
from fedkge.report.promised import gather_claim, gather_spending, open_ledger
from fedkge.report.reading import fingerprints
from fedkge.report.verdict import decide
from fedkge.report.wording import limits, seed_note
from fedkge.report.worth import gather_utility

MODELS = {"transe": "TransE", "rotate": "RotatE", "distmult": "DistMult", "complex": "ComplEx"}
LIBRARIES = ("numpy", "numba", "scipy", "dp-accounting")
PATHS = ("data", "init", "public_graph", "public_validation")
"""Options that may hold a path: only its last part is shown, for the rest may name people and places."""


def gather(run: Path, copy: Copy = "shareable", beside: Sequence[Path] = ()) -> Document:
    """Everything that the report says about a run, from the files in its directory alone."""
    configuration, provenance = RunDirectory(run).read_configuration()
    check_has_data(run, provenance)
    ledger = open_ledger(run)
    audit = gather_audit(run)
    attacks = gather_attacks(run, audit)
    claim = gather_claim(run, ledger, configuration)
    spending = gather_spending(ledger, configuration)
    utility = gather_utility(run, configuration, beside)
    return Document(
        format=FORMAT,
        copy=copy,
        run=_facts(run, configuration),
        verdict=decide(attacks.rows, claim, audit, attacks.level),
        claim=claim,
        attacks=attacks,
        audit=audit,
        spending=spending,
        utility=utility,
        exposed=gather_exposed(run, copy),
        figures=figure_texts(attacks, claim, audit, spending, utility),
        method=_method(run, configuration, provenance, ledger is not None),
        limits=limits(configuration),
    )


def _facts(run: Path, configuration: Configuration) -> RunFacts:
    return RunFacts(
        name=run.resolve().name,
        data=_shown("data", configuration.data),
        model=MODELS.get(configuration.model, configuration.model),
        dimension=configuration.dimension,
        clients=configuration.clients,
        strategy=configuration.strategy,
        defence=configuration.defence,
        rounds=configuration.rounds,
        victim=configuration.victim,
        adversary=configuration.adversary,
    )


def _method(run: Path, configuration: Configuration, provenance: dict[str, Any], defended: bool) -> Method:
    options = configuration.model_dump()
    changed = configuration.model_dump(exclude_defaults=True)
    return Method(
        seed=configuration.seed,
        targets_seed=targets_seed(run),
        noise_seed=configuration.noise_seed,
        seed_note=seed_note(configuration.noise_seed, defended),
        versions=(
            ("fedkge that trained", str(provenance.get("fedkge", "unknown"))),
            ("fedkge that wrote this", __version__),
            ("Python", platform.python_version()),
            *((name, _version(name)) for name in LIBRARIES),
        ),
        configuration_hash=str(provenance.get("configuration", "")),
        data_hash=str(provenance.get("data", "")),
        configuration=tuple((key.replace("_", "-"), _shown(key, options[key])) for key in changed),
        files=fingerprints(run),
        notice=str(provenance.get("notice", "")),
    )


def _shown(key: str, value: Any) -> str:
    return Path(value).name if key in PATHS and isinstance(value, str) else str(value)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
