"""`fedkge audit`: how much must a federation have given away, at least, and does that fit what it claims?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.errors import ConfigurationError, ContradictionError, LeakageError
from fedkge.cli.attack import attack_progress, check_names
from fedkge.cli.errors import stops_at_once
from fedkge.cli.options import normalised, with_configuration
from fedkge.cli.progress import narrator
from fedkge.cli.tables import grid, print_json, say, stdout
from fedkge.configuration import Configuration, parse, read_toml

if TYPE_CHECKING:
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
DEFAULTS = {"canaries": 1000, "canary-source": "victim"}
"""What `audit` sets where `train` has other defaults, unless it is told otherwise."""
RECORDED = 10
"""So many rounds are recorded, the last among them, unless --record says otherwise."""


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
    look = Look(_passive(attack or ()), _numbers(guesses), confidence, fail_above)
    given = {**normalised(read_toml(config) if config else {}), **options}
    if run is None:
        if out is None:
            raise ConfigurationError("expected a run directory to audit, or --out and training options for a new one")
        opened = _train(audited(given), look, out, overwrite)
    else:
        if wrong := [
            *(f"--{key}" for key in given),
            *(["--out"] if out else []),
            *(["--overwrite"] if overwrite else []),
        ]:
            raise ConfigurationError(f"{run} is trained already, got {', '.join(wrong)}: to train, leave out {run}")
        opened = _open(run, look)
    _audit(opened, look, as_json)


@dataclass(frozen=True, slots=True)
class Look:
    """How the coins will be looked at, fixed before anybody has."""

    attacks: tuple[str, ...]
    guesses: tuple[int, ...]
    confidence: float
    limit: float | None


def audited(given: Mapping[str, Any]) -> Configuration:
    """The training that an audit needs; under a research seed the coins derive from it, and canaries suit the defence.

    >>> audited({"rounds": 30}).experiment.record, audited({"seed": 7}).experiment.canary_coins
    ('3,6,9,12,15,18,21,24,27,30', 'seeded')
    """
    from fedkge.defences import chosen_defence  # noqa: PLC0415 (heavy)

    coins = "independent" if given.get("seed") is None else "seeded"
    values = {**DEFAULTS, "canary-coins": coins, **normalised(given)}
    configuration = parse(values)
    if suited := chosen_defence(configuration).auditing.options:
        configuration = parse({**values, **suited, **normalised(given)})
    if "record" in values and configuration.experiment.record != "none":
        return configuration
    step = max(1, configuration.training.rounds // RECORDED)
    rounds = sorted(range(configuration.training.rounds, 0, -step))[-RECORDED:]
    return configuration.updated(record=",".join(map(str, rounds)))


def _open(run: Path, look: Look) -> Run:
    from fedkge.api.training import open_run  # noqa: PLC0415 (heavy)

    opened = open_run(run)
    if opened.configuration.experiment.canaries:
        _check_limit(opened.configuration, look)
    return opened


def _train(configuration: Configuration, look: Look, path: Path, overwrite: bool) -> Run:
    from fedkge.api import training as runs  # noqa: PLC0415 (heavy)
    from fedkge.experiments.white_box_copy import COPY  # noqa: PLC0415 (heavy)

    if configuration.federation.strategy != "fede" and look.attacks != (COPY,):
        raise ConfigurationError(
            f"the attacks of an audit need shared entities, got strategy {configuration.federation.strategy!r}: "
            f"leave --strategy "
            "out, or look at a noisy copy alone with --attack copy"
        )
    _check_limit(configuration, look)
    _warn(configuration)
    hint = f"continue with: fedkge resume {path}, then: fedkge audit {path}"
    with narrator() as told, stops_at_once(hint, told.stop):
        return runs.start(configuration, None, path, overwrite=overwrite, observer=told)


def _warn(configuration: Configuration) -> None:
    if configuration.experiment.canary_coins == "seeded":
        say("WARNING: the coins derive from --seed. Whoever knows the seed knows them: this audit is no evidence.")


def _audit(opened: Run, look: Look, as_json: bool) -> None:
    from fedkge.experiments.recorded_audit import run_audit  # noqa: PLC0415 (heavy)

    with attack_progress() as progress:
        found = run_audit(opened, look.attacks, look.guesses, look.confidence, progress)
    if as_json:
        print_json({"run": str(opened.directory), **found.record()})
    else:
        _show(opened, found)
    _judge(found, look.limit)


def _judge(found: RunAudit, limit: float | None) -> None:
    """End with an exit code of its own where the bound says so."""
    bound = found.result.bound
    if found.claim is not None and found.contradicted:
        raise ContradictionError(
            f"claim contradicted: the run claims epsilon {found.claim.epsilon:.3f} at delta {found.claim.delta:g}, the "
            f"audit shows at least {bound:.3f}; do not release the model: the mechanism or its accounting is wrong"
        )
    if limit is not None and bound > limit:
        raise LeakageError(
            f"epsilon is at least {bound:.3f}, above the {limit:g} of --fail-above: train with a defence, "
            "or with a smaller budget"
        )


def _check_limit(configuration: Configuration, look: Look) -> None:
    """Refuse a limit that can never fail, and impossible guesses; all of this is known before training."""
    from fedkge.experiments.recorded_audit import reach  # noqa: PLC0415 (heavy)

    most = reach(configuration, look.attacks, look.guesses, look.confidence)
    if look.limit is not None and look.limit >= most:
        raise ConfigurationError(
            f"--fail-above {look.limit:g} could never fail: with {configuration.experiment.canaries:,} canaries this "
            f"audit can "
            f"show epsilon {most:.2f} at most; train with more --canaries, name fewer attacks, or lower the limit"
        )


def _show(opened: Run, found: RunAudit) -> None:
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


def sentences(found: RunAudit) -> list[str]:
    """What the audit says, in words."""
    result, claim = found.result, found.claim
    sure = f"{100 * result.confidence:g} % confidence, corrected for {result.comparisons} looks at the coins"
    lines = [
        f"Epsilon is at least {result.bound:.3f} at delta {result.delta:g} ({sure}).",
        f"This audit could show at most {result.ceiling:.3f}: about anything above, it says nothing.",
    ]
    if result.gaussian_bound is not None:
        lines.append(f"If the mechanism is Gaussian-like, epsilon is at least {result.gaussian_bound:.3f}.")
    if found.asked is not None:
        from fedkge.report.wording import asked_about  # noqa: PLC0415 (heavy)

        lines.append(asked_about(found.asked, result.canaries))
    if claim is None:
        lines.append("The run claims nothing: its ledger is empty, so epsilon has no limit.")
    else:
        lines.append(f"The run claims epsilon {claim.epsilon:.3f} at delta {claim.delta:g} per {claim.unit}.")
        if claim.epsilon >= result.ceiling:
            lines.append("No result of this audit could have contradicted that: it takes more canaries.")
        lines += claim.remarks
    return [*lines, f"Verdict: {found.verdict}."]


def _passive(names: Sequence[str]) -> tuple[str, ...]:
    from fedkge.attacks import ATTACKS  # noqa: PLC0415 (heavy)
    from fedkge.experiments.white_box_copy import COPY  # noqa: PLC0415 (heavy)

    chosen = check_names([name for name in names if name != COPY])
    if other := [name for name in chosen if name not in ATTACKS]:
        raise ConfigurationError(f"an audit uses passive attacks, got {', '.join(other)}; try `fedkge attack`")
    return (*chosen, COPY) if COPY in names else chosen


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
