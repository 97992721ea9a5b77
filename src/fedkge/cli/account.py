"""`fedkge account`: what a plan costs, the noise that a budget needs, and what runs have spent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from fedkge.base.errors import ConfigurationError

EXAMPLE = (
    "Examples: fedkge account --batch 4096 --triples 90000 --sigma 1 --steps 1000 (what it costs); "
    "fedkge account --batch 4096 --triples 90000 --epsilon 8 --steps 22 --rounds 30 --plot spending.svg (the noise "
    "that a budget needs); fedkge account --mechanism copy --epsilon 4 (how well an adversary guesses a triple "
    "under a noisy copy); fedkge account runs/a runs/b (what two runs on the same data have spent together)"
)

COPY = "copy"
PLAN, MECHANISM, SHOW = "A plan", "The mechanism's own numbers", "What to show"
NOT_SOUND, NOT_PRIVATE = "NOT SOUND", "NOT PRIVATE"
Runs = Annotated[list[Path] | None, typer.Argument(help="Run directories. Without them, the cost of a plan.")]
Batch = Annotated[int | None, typer.Option(help="Expected size of a batch.", rich_help_panel=PLAN)]
Triples = Annotated[int | None, typer.Option(help="Public number of triples of the client.", rich_help_panel=PLAN)]
Sigma = Annotated[
    float | None, typer.Option(help="Noise multiplier: standard deviation over clip norm.", rich_help_panel=PLAN)
]
Epsilon = Annotated[
    float | None, typer.Option(help="Budget, instead of --sigma: prints the noise that it needs.", rich_help_panel=PLAN)
]
Steps = Annotated[int, typer.Option(min=1, help="Number of noisy steps in each round.", rich_help_panel=PLAN)]
Rounds = Annotated[int, typer.Option(min=1, help="Number of rounds.", rich_help_panel=PLAN)]
Delta = Annotated[
    float | None,
    typer.Option(
        help="Delta. Without it, the smaller of 1e-5 and 1/(10 triples), or the delta of the runs.",
        rich_help_panel=PLAN,
    ),
]
AllowLargeDelta = Annotated[
    bool, typer.Option("--allow-large-delta", help="Accept a delta of 1/triples or more.", rich_help_panel=PLAN)
]
Mechanism = Annotated[
    str,
    typer.Option(
        metavar="dense|adafest|ptr|published|copy",
        help="Mechanism: which rows get noise, or a noisy copy.",
        rich_help_panel=PLAN,
    ),
]
Decay = Annotated[float, typer.Option(help="Factor on the noise after each round.", rich_help_panel=MECHANISM)]
SelectionShare = Annotated[
    float, typer.Option(help="Adafest: share of 1/sigma^2 that pays for selection.", rich_help_panel=MECHANISM)
]
SigmaR = Annotated[
    float | None,
    typer.Option("--sigma-r", help="Ptr: noise of the guess. Without it, --sigma.", rich_help_panel=MECHANISM),
]
SigmaP = Annotated[
    float | None,
    typer.Option("--sigma-p", help="Ptr: noise of the test. Without it, --sigma.", rich_help_panel=MECHANISM),
]
DeltaT = Annotated[
    float | None,
    typer.Option(
        "--delta-t",
        help="Ptr: probability that a test passes wrongly. Without it, half of delta.",
        rich_help_panel=MECHANISM,
    ),
]
Passed = Annotated[float, typer.Option(help="Published: share of tests that pass.", rich_help_panel=MECHANISM)]
AccountantName = Annotated[
    str | None,
    typer.Option(metavar="pld|rdp", help="Accountant. Without it, pld, or that of the runs.", rich_help_panel=SHOW),
]
PassOn = Annotated[
    Path | None,
    typer.Option(help="Write a copy of the run's ledger for others, without digests of data.", rich_help_panel=SHOW),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw epsilon over the rounds to this .svg, .png or .pdf file.", rich_help_panel=SHOW),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel=SHOW)]


def account(
    runs: Runs = None,
    batch: Batch = None,
    triples: Triples = None,
    sigma: Sigma = None,
    epsilon: Epsilon = None,
    steps: Steps = 1,
    rounds: Rounds = 1,
    delta: Delta = None,
    allow_large_delta: AllowLargeDelta = False,
    mechanism: Mechanism = "dense",
    decay: Decay = 1.0,
    selection_share: SelectionShare = 0.2,
    sigma_r: SigmaR = None,
    sigma_p: SigmaP = None,
    delta_t: DeltaT = None,
    passed: Passed = 1.0,
    accountant: AccountantName = None,
    pass_on: PassOn = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compute the epsilon of a plan or of runs, or the noise for a budget.

    (epsilon, delta) bounds what an adversary can learn about one triple of a client. The adversary sees every step, not
    only the uploads. Batches are Poisson samples. A smaller epsilon is safer; above 10 the bound says little.

    The command also says how often an adversary guesses one triple right, starting from even odds. It shows the paper's
    formulas too, with a label: they are not sound.
    """
    from fedkge.accounting.curves import check_plot_path  # noqa: PLC0415 (heavy, like all that follows)
    from fedkge.accounting.deltas import chosen_delta  # noqa: PLC0415
    from fedkge.accounting.plans import CostPlan  # noqa: PLC0415
    from fedkge.cli.account_plan import account_plan  # noqa: PLC0415

    if plot is not None:
        check_plot_path(plot)
    if runs:
        if batch or triples or sigma or epsilon:
            raise ConfigurationError("expected run directories or a plan, got both: leave one out")
        _account_runs(runs, delta, allow_large_delta, accountant, pass_on, plot, as_json)
        return
    if pass_on is not None:
        raise ConfigurationError("--pass-on writes the ledger of a run: name its run directory")
    if mechanism == COPY:
        _account_copy(sigma, epsilon, delta, as_json)
        return
    if batch is None or triples is None or (sigma is None) == (epsilon is None):
        raise ConfigurationError(
            "a plan needs --batch, --triples and --steps, and either --sigma (prints epsilon) or --epsilon (prints "
            "the noise); or name run directories. fedkge account --help has examples"
        )
    plan = CostPlan(
        mechanism=mechanism,
        batch=batch,
        triples=triples,
        steps=steps,
        rounds=rounds,
        delta=chosen_delta(delta, triples, allow_large_delta),
        decay=decay,
        selection_share=selection_share,
        gap=sigma_r,
        test=sigma_p,
        failure=delta_t,
        passed=passed,
    )
    account_plan(plan, sigma, epsilon, accountant or "pld", plot, as_json)


def _account_runs(
    runs: list[Path],
    delta: float | None,
    allow_large_delta: bool,
    accountant: str | None,
    pass_on: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    from fedkge.cli.account_runs import account_runs, write_ledger_to_pass_on  # noqa: PLC0415

    if pass_on is not None:
        write_ledger_to_pass_on(runs, pass_on)
    account_runs(runs, delta, allow_large_delta, accountant, plot, as_json)


def _account_copy(sigma: float | None, epsilon: float | None, delta: float | None, as_json: bool) -> None:
    from fedkge.cli.account_copy import account_copy  # noqa: PLC0415

    if epsilon is None or sigma is not None:
        raise ConfigurationError("a copy needs a budget and no --sigma: fedkge account --mechanism copy --epsilon 4")
    account_copy(epsilon, 1e-5 if delta is None else delta, as_json)


def shown(cost: float) -> str:
    """Epsilon for people.

    >>> shown(0.01234), shown(9.8513), shown(math.inf)
    ('0.012', '9.851', 'no guarantee')
    """
    if math.isinf(cost):
        return "no guarantee"
    return f"{cost:.2g}" if 0 < cost < 0.001 else f"{cost:,.3f}"


def label(name: str) -> str:
    """The accountant as tables and pictures name it."""
    return f"published ({NOT_SOUND})" if name == "published" else name
