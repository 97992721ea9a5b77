"""`fedkge account --mechanism copy`: what a guess about one triple is worth under a noisy copy, before one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fedkge.accounting.posterior import guess_worth
from fedkge.base.numbers import percent
from fedkge.cli.tables import grid, print_json, stdout
from fedkge.defences.noisy_copy.presets import FEW_TRIPLES
from fedkge.report.guess_words import guess_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fedkge.accounting.posterior import GuessWorth
    from fedkge.defences.noisy_copy.client import ClientCopy

FEW, MANY = f"a client with fewer than {FEW_TRIPLES:g} triples per entity", "a client"


def account_copy(epsilon: float, delta: float, as_json: bool) -> None:
    """Print the shares of epsilon that a copy takes, and what a guess is worth under it."""
    found = {name: (plan, _worth(plan)) for name, plan in _plans(epsilon, delta).items()}
    if as_json:
        print_json({"mechanism": "copy", "epsilon": epsilon, "delta": delta, "clients": _records(found)})
        return
    for name, (plan, worth) in found.items():
        words = guess_words(worth) if worth else "Nothing is guaranteed."
        line = f"{name[0].upper()}{name[1:]}, epsilon {epsilon:g} at delta {delta:g}: {_shares(plan)} {words}"
        stdout().print(line, markup=False, soft_wrap=True)


def worth_table(worths: Mapping[str, GuessWorth]) -> RenderableType:
    """What a guess about one triple of each client is worth; a dash where a client has no copy."""
    rows = [
        (
            client,
            *(_cell(chance) for chance in (each.typical, each.unasked, each.counts_agree, each.answer, each.worst)),
        )
        for client, each in worths.items()
    ]
    header = ("client", "right guesses", "if not asked", "counts agree", "one answer", "never surer than")
    return grid("A guess about one triple, at even odds, by somebody who knows all others", header, rows)


def _cell(chance: float | None) -> str:
    return "-" if chance is None else percent(chance)


def _plans(epsilon: float, delta: float) -> dict[str, ClientCopy]:
    """A copy's plan for this budget, by public numbers; where triples are few it may have other shares."""
    from fedkge.defences import parse  # noqa: PLC0415 (slow to import)
    from fedkge.defences.defence import PublicNumbers  # noqa: PLC0415
    from fedkge.defences.noisy_copy.client import ClientCopy  # noqa: PLC0415
    from fedkge.mechanisms.events import Charge  # noqa: PLC0415
    from fedkge.mechanisms.size import size_event  # noqa: PLC0415

    options = parse({"defence": "recommended", "epsilon": epsilon, "delta": delta})
    size = size_event(epsilon)
    left = epsilon - size.sensitivity / size.scale  # for the copy: neither has a delta
    noise, paid = epsilon / left, (Charge(size),)
    many, few = (ClientCopy(options, PublicNumbers(1000, entities, advance=paid), noise) for entities in (1, 1000))
    return {MANY: many} if many.copy == few.copy else {MANY: many, FEW: few}


def _worth(plan: ClientCopy) -> GuessWorth | None:
    return guess_worth(plan.planned(1), plan.options.privacy.epsilon or 0.0, plan.delta)


def _shares(plan: ClientCopy) -> str:
    copy = plan.copy
    from fedkge.mechanisms.events import Geometric  # noqa: PLC0415

    counts = Geometric(copy.profile_scale).epsilon
    return f"counts get {counts:.4g} of it, each answer {copy.epsilon:.4g}, the noisy size the rest."


def _records(found: Mapping[str, tuple[ClientCopy, GuessWorth | None]]) -> list[dict[str, object]]:
    return [
        {
            "client": name,
            "count_scale": plan.copy.profile_scale,
            "answer_epsilon": plan.copy.epsilon,
            "guess": worth.record() if worth else None,
        }
        for name, (plan, worth) in found.items()
    ]
