"""`fedkge attack`: what could each adversary infer from what it saw in a recorded run?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.api.attacks import ALL, attack_plan
from fedkge.api.opening import opened
from fedkge.base.errors import ConfigurationError
from fedkge.cli.attack_run import perform
from fedkge.cli.tables import say
from fedkge.experiments.plot import FORMATS

EXAMPLE = (
    "Example: fedkge attack runs/open --targets C --targets-count 300. It needs a recorded run: "
    "fedkge train --data demo --clients 3 --canaries 600 --record every:5 --out runs/open"
)


def attack(
    run: Annotated[
        Path, typer.Argument(help="Run directory. Train it with --record and, for designs C and R, with --canaries.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Option("--attack", help="Attack by name. Repeat it for several. Without it, all attacks that fit."),
    ] = None,
    targets: Annotated[str, typer.Option(help="Designs of targets (A,B,C,D,R), separated by commas.")] = ALL,
    every: Annotated[int, typer.Option(min=1, help="Attack after every N-th round, and after the last round.")] = 5,
    targets_count: Annotated[
        int | None,
        typer.Option(min=2, help="Number of members per design, and of non-members. Without it, up to 500 of each."),
    ] = None,
    auxiliary: Annotated[int, typer.Option(min=0, help="True triples per relation that the server knows.")] = 20,
    group_size: Annotated[int, typer.Option(min=0, help="CIA: number of targets attacked at once. 0 means all.")] = 600,
    waiting_rounds: Annotated[
        int, typer.Option(min=1, help="CIA: rounds between the reversal of a target and its observation.")
    ] = 5,
    shadows: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Shadow federations to train, kept beside the run. Without it, 2 for shadow and 16 for LiRA.",
        ),
    ] = None,
    base: Annotated[
        str, typer.Option("--lira-base", help="LiRA: the attack whose scores it compares.")
    ] = "upload-difference",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the targets.")] = 0,
    victim: Annotated[
        str | None, typer.Option(help="The client that is attacked. Without it, the victim of the run.")
    ] = None,
    adversary: Annotated[
        str | None, typer.Option(help="The client that attacks. Without it, the adversary of the run.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw ROC curves (log-log), and F1 and AUC by round, to this .svg, .pdf or .png file."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON on stdout, one line per attack, design and round.")
    ] = False,
) -> None:
    """Run inference attacks on a recorded run and show how well each one does.

    The adversaries are the server, a client, and both together. Each attack sees only what its adversary saw.

    Compare F1 with 0.667, which is the F1 of guessing "member" every time. A true-positive rate is shown only if there
    are enough non-members to support it.
    """
    if plot is not None and plot.suffix not in FORMATS:
        raise ConfigurationError(f"--plot: expected a name that ends with {', '.join(FORMATS)}, got {plot}")
    whole = opened(run)
    plan, notes = attack_plan(
        whole,
        names or (),
        targets=targets,
        every=every,
        targets_count=targets_count,
        auxiliary=auxiliary,
        group_size=group_size,
        waiting_rounds=waiting_rounds,
        shadows=shadows,
        lira_base=base,
        seed=seed,
        victim=victim,
        adversary=adversary,
    )
    for note in notes:
        say(note)
    perform(whole, plan, as_json, plot)
