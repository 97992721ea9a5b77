"""`fedkge audit`: how much must a federation have given away, at least, and does that fit what it claims?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.errors import ConfigurationError
from fedkge.cli.attack import attack_progress
from fedkge.cli.errors import stops_at_once
from fedkge.cli.options import normalised, with_configuration
from fedkge.cli.progress import narrator
from fedkge.cli.tables import grid, print_json, say, stdout
from fedkge.configuration import Configuration, read_toml

if TYPE_CHECKING:
    from fedkge.api.audits import Look
    from fedkge.experiments.recorded_audit import RunAudit
    from fedkge.runs.run import Run

EXAMPLE = (
    "Example: fedkge audit --data demo --clients 3 --rounds 20 --canaries 1000 --out runs/audited, "
    "then again at any time: fedkge audit runs/audited --fail-above 4"
)
HEADER = (
    "attack",
    "adversary",
    "scored",
    "guesses",
    "right",
    "epsilon\nat least",
    "could show\nat most",
    "Gaussian-\nlike",
)
FULL_WIDTH = 96
NARROW = (0, 1, 3, 4, 5, 6)
"""The columns for a narrower terminal."""


@with_configuration
def audit(
    options: Mapping[str, Any],
    run: Annotated[
        Path | None, typer.Argument(help="Run directory, trained with independent coins; without it, train one.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with training options; flags win over it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of the new run.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Remove the run that is already there.")] = False,
    attack: Annotated[
        list[str] | None,
        typer.Option("--attack", metavar="NAME", help="Passive attack; repeat for several. Without: all that fit."),
    ] = None,
    guesses: Annotated[
        str, typer.Option(metavar="N,N", help="Numbers of guesses. Without: a tenth and a half of the canaries.")
    ] = "",
    confidence: Annotated[float, typer.Option(help="Chance that the bound holds.")] = 0.95,
    fail_above: Annotated[
        float | None, typer.Option(min=0.0, help="Exit with code 9 if epsilon is shown to be above this.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON on stdout, as in audit.json.")] = False,
) -> None:
    """Show how large epsilon must be at least, from one training with canaries, beside what the run claims.

    Canaries are triples that nobody holds; a coin for each decides whether the victim trains on it. The more coins the
    attacks guess right, the more was given away. Fix attacks and guesses before you look: the bound is corrected for
    their number, not for afterthoughts. It ends with code 10 if the bound contradicts the run's own claim.
    """
    from fedkge.api.audits import audit_run, audited, passive_attacks  # noqa: PLC0415 (heavy)

    look: Look = {"attacks": passive_attacks(attack or ()), "guesses": _numbers(guesses), "confidence": confidence}
    given = {**normalised(read_toml(config) if config else {}), **options}
    if run is None:
        if out is None:
            raise ConfigurationError("expected a run directory to audit, or --out and training options for a new one")
        opened = _train(audited(given), look, fail_above, out, overwrite)
    else:
        if wrong := [
            *(f"--{key}" for key in given),
            *(["--out"] if out else []),
            *(["--overwrite"] if overwrite else []),
        ]:
            raise ConfigurationError(f"{run} is trained already, got {', '.join(wrong)}: to train, leave out {run}")
        opened = _open(run, look, fail_above)
    with attack_progress() as progress:
        found = audit_run(opened, progress=progress, **look)
    if as_json:
        print_json({"run": str(opened.directory), **found.found.record()})
    else:
        _show(opened, found.found)
    found.check(fail_above)


def _open(run: Path, look: Look, limit: float | None) -> Run:
    from fedkge.api.audits import check_limit  # noqa: PLC0415 (heavy)
    from fedkge.api.opening import opened  # noqa: PLC0415

    whole = opened(run)
    if whole.configuration.experiment.canaries:
        check_limit(whole.configuration, limit, **look)
    return whole


def _train(configuration: Configuration, look: Look, limit: float | None, path: Path, overwrite: bool) -> Run:
    from fedkge.api.auditing import train_for_audit  # noqa: PLC0415 (heavy)

    if configuration.experiment.canary_coins == "seeded":
        say("WARNING: the coins derive from --seed. Whoever knows the seed knows them: this audit is no evidence.")
    hint = f"continue with: fedkge resume {path}, then: fedkge audit {path}"
    with narrator() as told, stops_at_once(hint, told.stop):
        return train_for_audit(configuration, None, path, limit, overwrite=overwrite, observer=told, **look)


def _show(opened: Run, found: RunAudit) -> None:
    from fedkge.api.audits import sentences  # noqa: PLC0415 (heavy)
    from fedkge.experiments.recorded_audit import COINS, RESULTS  # noqa: PLC0415

    result, console = found.result, stdout()
    rows = [
        (
            one.attack,
            found.adversaries[one.attack],
            f"{one.scored:,}",
            f"{one.guesses:,}",
            f"{one.right:,}",
            f"{one.bound:.3f}",
            f"{one.ceiling:.3f}",
            "-" if one.gaussian_bound is None else f"{one.gaussian_bound:.3f}",
        )
        for one in result.findings
    ]
    title = f"{result.canaries:,} canaries, {result.inserted:,} of them in the training data of {found.victim}"
    kept = range(len(HEADER)) if console.width >= FULL_WIDTH else NARROW
    console.print(grid(title, [HEADER[i] for i in kept], [[row[i] for i in kept] for row in rows], words=(0, 1)))
    for line in sentences(found):
        console.print(line, markup=False)
    if len(found.plans) > 1:
        say("This run was audited before with other attacks or guesses: the bound holds only for the first choice.")
    if found.coins == "seeded":
        say(f"WARNING: {COINS['seeded']}.")
    say(f"Everything about it: {opened.directory}/{RESULTS}")


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of guesses.

    >>> _numbers("100, 500")
    (100, 500)
    """
    if not text:
        return ()
    if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        raise ConfigurationError(f"--guesses: expected even numbers like 100,500, got {text!r}")
    return tuple(int(part) for part in text.split(","))
