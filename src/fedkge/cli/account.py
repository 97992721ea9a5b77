"""`fedkge account`: what a plan costs, the noise that a budget needs, and what runs have spent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.errors import ConfigurationError
from fedkge.cli.tables import grid, print_json, say, stderr, stdout

if TYPE_CHECKING:
    from fedkge.accounting import Accountant
    from fedkge.accounting.curves import Curve
    from fedkge.accounting.plans import CostPlan
    from fedkge.mechanisms.events import Charge

EXAMPLE = (
    "Examples: fedkge account --batch 4096 --triples 90000 --sigma 1 --steps 1000 (what it costs); "
    "fedkge account --batch 4096 --triples 90000 --epsilon 8 --steps 22 --rounds 30 --plot spending.svg (the noise "
    "that a budget needs); fedkge account --mechanism copy --epsilon 4 (what a guess about a triple is worth under a "
    "noisy copy); fedkge account runs/a runs/b (what two runs on the same data have spent together)"
)

COPY = "copy"
PLAN, MECHANISM, SHOW = "A plan", "The mechanism's own numbers", "What to show"
NOT_SOUND, NOT_PRIVATE = "NOT SOUND", "NOT PRIVATE"
POINTS, PLOT_POINTS, PARTS = 10, 20, 20
"""Rows of the table; points of the picture; what steps without rounds are cut into for a picture."""

Sigma = Annotated[float | None, typer.Option(help="Noise multiplier: deviation over clip.", rich_help_panel=PLAN)]


def account(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run directories: what they have spent. Without: cost a plan.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Expected size of a batch.", rich_help_panel=PLAN)] = None,
    triples: Annotated[
        int | None, typer.Option(help="Public number of triples of the client.", rich_help_panel=PLAN)
    ] = None,
    sigma: Sigma = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Instead of --sigma: a budget; prints the noise it needs.", rich_help_panel=PLAN),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Noisy steps, per round.", rich_help_panel=PLAN)] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds.", rich_help_panel=PLAN)] = 1,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta; default the smaller of 1e-5 and 1/(10 triples), or what the runs promised.",
            rich_help_panel=PLAN,
        ),
    ] = None,
    allow_large_delta: Annotated[
        bool, typer.Option("--allow-large-delta", help="Accept a delta of 1/triples or more.", rich_help_panel=PLAN)
    ] = False,
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="dense|adafest|ptr|published|copy",
            help="Which rows get noise; or a noisy copy.",
            rich_help_panel=PLAN,
        ),
    ] = "dense",
    decay: Annotated[
        float, typer.Option(help="Factor by which the noise falls each round.", rich_help_panel=MECHANISM)
    ] = 1.0,
    selection_share: Annotated[
        float,
        typer.Option(help="Adafest: share of 1/sigma^2 that pays for selection.", rich_help_panel=MECHANISM),
    ] = 0.2,
    sigma_r: Annotated[
        float | None,
        typer.Option("--sigma-r", help="Ptr: noise of the arg max; default --sigma.", rich_help_panel=MECHANISM),
    ] = None,
    sigma_p: Annotated[
        float | None,
        typer.Option("--sigma-p", help="Ptr: noise of the test; default --sigma.", rich_help_panel=MECHANISM),
    ] = None,
    delta_t: Annotated[
        float | None,
        typer.Option(
            "--delta-t",
            help="Ptr: chance that a test passes wrongly; default half of delta.",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    passed: Annotated[
        float, typer.Option(help="Published: share of tests that pass.", rich_help_panel=MECHANISM)
    ] = 1.0,
    accountant: Annotated[
        str | None,
        typer.Option(metavar="pld|rdp", help="Who counts; default pld, or as promised.", rich_help_panel=SHOW),
    ] = None,
    pass_on: Annotated[
        Path | None,
        typer.Option(
            help="Write the run's ledger as others may read it, without digests of data.", rich_help_panel=SHOW
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw epsilon over rounds: FILE.svg, .png or .pdf.", rich_help_panel=SHOW)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.", rich_help_panel=SHOW)] = False,
) -> None:
    """Epsilon: of a plan, for a budget, or of runs that were trained.

    (epsilon, delta) bounds what anyone can learn about one triple of a client.
    The adversary sees every step, not only the uploads; batches are Poisson.
    Smaller is safer; above 10 or so the bound says little.
    It also says what a guess about one triple is worth at even odds.
    The paper's formulas are shown beside, labelled: they are not sound.
    """
    from fedkge.accounting.curves import check_plot_path  # noqa: PLC0415

    if plot is not None:
        check_plot_path(plot)
    if runs:
        from fedkge.cli.account_runs import account_runs, write_ledger_to_pass_on  # noqa: PLC0415

        if batch or triples or sigma or epsilon:
            raise ConfigurationError("expected run directories or a plan, got both: leave one out")
        if pass_on is not None:
            write_ledger_to_pass_on(runs, pass_on)
        account_runs(runs, delta, allow_large_delta, accountant, plot, as_json)
        return
    if pass_on is not None:
        raise ConfigurationError("--pass-on writes the ledger of a run: name its run directory")
    if mechanism == COPY:
        from fedkge.cli.account_copy import account_copy  # noqa: PLC0415

        if epsilon is None or sigma is not None:
            raise ConfigurationError(
                "a copy needs a budget and no --sigma: fedkge account --mechanism copy --epsilon 4"
            )
        account_copy(epsilon, 1e-5 if delta is None else delta, as_json)
        return
    from fedkge.accounting.deltas import chosen_delta  # noqa: PLC0415
    from fedkge.accounting.plans import CostPlan  # noqa: PLC0415

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
    _account_plan(plan, sigma, epsilon, accountant or "pld", plot, as_json)


def _account_plan(
    plan: CostPlan, sigma: float | None, budget: float | None, name: str, plot: Path | None, as_json: bool
) -> None:
    from fedkge.accounting import calibrate, make_accountant  # noqa: PLC0415
    from fedkge.accounting.curves import epsilon_over_rounds  # noqa: PLC0415
    from fedkge.accounting.deltas import large_epsilon  # noqa: PLC0415
    from fedkge.accounting.posterior import guess_worth  # noqa: PLC0415

    chosen = make_accountant("published" if plan.mechanism == "published" else name)
    with stderr().status("accounting"):
        noise = sigma if sigma is not None else calibrate(plan.charges, budget or 0.0, plan.delta, chosen)
        costs = _costs(plan, noise, chosen)
        rounds = [[charge] for charge in plan.by_round(noise)]
        curve = epsilon_over_rounds(rounds, plan.delta, chosen, POINTS) if plan.rounds > 1 else []
        if plot is not None:
            _plot(plan, noise, costs, budget, plot)
        worth = guess_worth(plan.charges(noise), costs[chosen.name], plan.delta) if chosen.sound else None
    if as_json:
        print_json(
            _record(plan, noise, budget, chosen, costs, curve) | {"guess": None if worth is None else worth.record()}
        )
    else:
        _show(plan, noise, budget, chosen, costs, curve)
        if worth:
            stdout().print(worth.words, markup=False, soft_wrap=True)
    if warning := large_epsilon(costs[chosen.name] if math.isfinite(costs[chosen.name]) else None):
        say(f"WARNING: {warning}")
    if plot is not None:
        say(f"Drawn: {plot}")


def _costs(plan: CostPlan, noise: float, chosen: Accountant) -> dict[str, float]:
    """Epsilon by every accountant that knows the mechanism, the chosen one first."""
    from fedkge.accounting import ACCOUNTANTS, make_accountant  # noqa: PLC0415

    charges = plan.charges(noise)
    costs = {chosen.name: chosen.epsilon(charges, plan.delta)}
    for name in ACCOUNTANTS:
        if name not in costs and not (name == "published" and plan.mechanism == "adafest"):
            costs[name] = make_accountant(name).epsilon(charges, plan.delta)
    return costs


def _record(
    plan: CostPlan, noise: float, budget: float | None, chosen: Accountant, costs: dict[str, float], curve: Curve
) -> dict[str, Any]:
    from fedkge.accounting.accountants import NEIGHBOURS  # noqa: PLC0415
    from fedkge.report.promise_words import NEIGHBOURS as words  # noqa: N811, PLC0415

    return {
        "mechanism": plan.mechanism,
        "sigma": noise,
        "epsilon": finite(costs[chosen.name]),
        "delta": plan.delta,
        "accountant": chosen.name,
        "sound": chosen.sound,
        "private": plan.mechanism != "published" and chosen.sound,
        "budget": budget,
        "neighbours": words[NEIGHBOURS],
        "batch": plan.batch,
        "triples": plan.triples,
        "sampling_rate": plan.rate,
        "steps": plan.steps,
        "rounds": plan.rounds,
        "epsilon_by_accountant": {name: finite(cost) for name, cost in costs.items()},
        "epsilon_over_rounds": [{"round": number, "epsilon": finite(cost)} for number, cost in curve],
        "charges": [charge.record() for charge in plan.charges(noise)],
    }


def finite(cost: float) -> float | None:
    """Epsilon for JSON, which knows no infinity: null means that nothing is guaranteed."""
    return cost if math.isfinite(cost) else None


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


def _show(
    plan: CostPlan, noise: float, budget: float | None, chosen: Accountant, costs: dict[str, float], curve: Curve
) -> None:
    console = stdout()
    if budget is not None:
        line = f"Noise multiplier {noise:.4f} keeps epsilon {budget:g} at delta {plan.delta:g} ({label(chosen.name)})."
        console.print(line, style="bold", markup=False, soft_wrap=True)
        console.print()
    rows = [(label(name), shown(cost), _remark(plan, name, cost, name == chosen.name)) for name, cost in costs.items()]
    console.print(grid(_title(plan, noise), ("accountant", "epsilon", ""), rows, words=(0, 2)))
    if curve:
        body = [(str(number), shown(cost)) for number, cost in curve]
        console.print(grid(f"Over rounds ({label(chosen.name)})", ("round", "epsilon"), body, words=()))
    if plan.mechanism == "ptr":
        say("A private test passes almost never at the paper's sizes: see docs/proofs/ptr.md before you train with it.")


def _title(plan: CostPlan, noise: float) -> str:
    steps = f"{plan.steps:,} step{'s' if plan.steps > 1 else ''}"
    steps = steps if plan.rounds == 1 else f"{plan.rounds:,} rounds of {steps}"
    falling = f", falling by {plan.decay:g} per round" if plan.decay < 1 and plan.rounds > 1 else ""
    return (
        f"{plan.mechanism}: {steps}, batches of {plan.batch:,} out of {plan.triples:,} triples, "
        f"noise {noise:.4g}{falling}, delta {plan.delta:g}"
    )


def _remark(plan: CostPlan, name: str, cost: float, chosen: bool) -> str:
    if name == "published" and math.isinf(cost):
        return "the paper's formulas allow no order at these sizes"
    if name == "published":
        return "the paper's formulas: no upper bound, see docs/proofs/published.md"
    if plan.mechanism == "published":
        return "as printed, the mechanism gives no guarantee; the sound form is --mechanism ptr"
    return "the bound to quote" if chosen else "an upper bound too"


def _plot(plan: CostPlan, noise: float, costs: dict[str, float], budget: float | None, path: Path) -> None:
    from fedkge.accounting import make_accountant  # noqa: PLC0415
    from fedkge.accounting.curves import epsilon_over_rounds, plot_curves  # noqa: PLC0415

    rounds, across = _parts(plan, noise)
    curves = {
        label(name): epsilon_over_rounds(rounds, plan.delta, make_accountant(name), PLOT_POINTS)
        for name, cost in costs.items()
        if math.isfinite(cost)
    }
    plot_curves(curves, path, _title(plan, noise), budget, across)


def _parts(plan: CostPlan, noise: float) -> tuple[list[list[Charge]], str]:
    """What is drawn point by point, and what to call a point: rounds, or equal parts of a single round."""
    from fedkge.mechanisms.events import Charge  # noqa: PLC0415

    if plan.rounds > 1 or plan.steps == 1:
        return [[charge] for charge in plan.by_round(noise)], "round"
    size = math.ceil(plan.steps / PARTS)
    sizes = [min(size, plan.steps - done) for done in range(0, plan.steps, size)]
    return [[Charge(plan.event(noise), steps)] for steps in sizes], f"times {size:,} steps"
