"""Defences: what each releases, what that costs, how a client trains under it, and how it is told and audited.

To add one: write a class with the methods of `fedkge.defences.defence.Defence` in a package of its own, and name it in
`DEFENCES`. Training, budgets, attacks, reports and the command line ask the object and nothing else.
"""

from __future__ import annotations

from fedkge.accounting.promises import Promise
from fedkge.base.registry import look_up
from fedkge.configuration import Configuration
from fedkge.defences.defence import Defence
from fedkge.defences.noisy_copy.defence import NoisyCopyDefence
from fedkge.defences.noisy_steps.defence import NoisySteps
from fedkge.defences.none.defence import Undefended

__all__ = ["DEFENCES", "Defence", "check_defence", "chosen_defence", "promised_defence"]

DEFENCES: dict[str, Defence] = {
    defence.name: defence
    for defence in (
        Undefended(),
        NoisySteps("dpsgd"),
        NoisySteps("dp-flames"),
        NoisySteps("dp-flames-adaptive"),
        NoisySteps("noisy-steps"),
        NoisyCopyDefence(),
    )
}
"""Every defence by the name of its option value."""


def chosen_defence(options: Configuration) -> Defence:
    """The defence that these options name.

    >>> chosen_defence(Configuration()).keeps_ledger
    False
    """
    return look_up(DEFENCES, options.privacy.defence, "defence")


def promised_defence(promise: Promise) -> Defence:
    """The defence that a promise in a ledger was made under."""
    return look_up(DEFENCES, promise.facts.defence or "", "defence")


def check_defence(options: Configuration) -> None:
    """Refuse options that would make the promise of their defence untrue, before anything is read or written."""
    chosen_defence(options).check(options)
