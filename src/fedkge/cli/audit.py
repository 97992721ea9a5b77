"""`fedkge audit`: how much must a federation have given away, at least, and does that fit what it claims?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fedkge.api.auditing import train_for_audit
from fedkge.api.audits import Look, audit_run, audited, check_limit, passive_attacks, sentences
from fedkge.api.opening import opened
from fedkge.base.errors import ConfigurationError
from fedkge.cli.attack_run import attack_progress
from fedkge.cli.errors import stops_at_once
from fedkge.cli.options import given_options, with_configuration
from fedkge.cli.progress import narrator
from fedkge.cli.tables import grid, print_json, say, stdout
from fedkge.configuration import Configuration
from fedkge.experiments.recorded_audit import COINS, RESULTS, RunAudit
from fedkge.runs.run import Run

EXAMPLE = (
    "Example: fedkge audit --data demo --clients 3 --rounds 20 --canaries 1000 --out runs/audited. "
    "Audit the same run again: fedkge audit runs/audited --fail-above 4"
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
        Path | None,
        typer.Argument(help="Run directory, trained with independent coins. Without it, the command trains a new run."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with training options. Flags take precedence over it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of the new run.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out, if there is one.")] = False,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            metavar="NAME",
            help="Passive attack by name. Repeat it for several. Without it, all attacks that fit.",
        ),
    ] = None,
    guesses: Annotated[
        str,
        typer.Option(metavar="N,N", help="Numbers of guesses. Without it, a tenth of the canaries and half of them."),
    ] = "",
    confidence: Annotated[float, typer.Option(help="Probability that the bound holds.")] = 0.95,
    fail_above: Annotated[
        float | None, typer.Option(min=0.0, help="Exit with code 9 if the bound is above this epsilon.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout, as in audit.json.")] = False,
) -> None:
    """Compute a lower bound of epsilon and compare it with the run's claim.

    The audit uses canaries: triples that no client holds. One coin per canary decides whether the victim trains on it.
    The attacks guess the coins. The more guesses are right, the larger epsilon must be.

    Choose attacks and guesses before you see a result: the bound is corrected for their number, but not for a choice
    that you make afterwards. The exit code is 10 if the bound contradicts the run's own claim.
    """
    look: Look = {"attacks": passive_attacks(attack or ()), "guesses": _numbers(guesses), "confidence": confidence}
    given = given_options(config, options)
    if run is None:
        if out is None:
            raise ConfigurationError("expected a run directory to audit, or --out and training options for a new one")
        whole = _train(audited(given), look, fail_above, out, overwrite)
    else:
        flags = {**{f"--{key}": True for key in given}, "--out": out is not None, "--overwrite": overwrite}
        if wrong := [flag for flag, is_given in flags.items() if is_given]:
            raise ConfigurationError(
                f"expected no training options, because {run} is trained already, got {', '.join(wrong)}; leave out "
                f"{run} to train a new run"
            )
        whole = opened(run)
        if whole.configuration.experiment.canaries:
            check_limit(whole.configuration, fail_above, **look)
    with attack_progress() as progress:
        found = audit_run(whole, progress=progress, **look)
    if as_json:
        print_json({"run": str(whole.directory), **found.found.record()})
    else:
        _show(whole, found.found)
    found.check(fail_above)


def _train(configuration: Configuration, look: Look, limit: float | None, path: Path, overwrite: bool) -> Run:
    if configuration.experiment.canary_coins == "seeded":
        say("WARNING: the coins come from --seed. Anyone who knows the seed knows them, so this audit proves nothing.")
    hint = f"continue with: fedkge resume {path}, then: fedkge audit {path}"
    with narrator() as told, stops_at_once(hint, told.stop):
        return train_for_audit(configuration, None, path, limit, overwrite=overwrite, observer=told, **look)


def _show(opened: Run, found: RunAudit) -> None:
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
        console.print(line)
    if len(found.plans) > 1:
        say("This run was audited before with other attacks or guesses. The bound holds only for the first audit.")
    if found.coins == "seeded":
        say(f"WARNING: {COINS['seeded']}.")
    say(f"All results: {opened.directory}/{RESULTS}")


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
