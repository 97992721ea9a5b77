"""Defences: what each releases, what that costs, how a client trains under it, and how it is told and audited.

To add one: write a class with the methods of `fedkge.defences.defence.Defence` in a package of its own, and name it in
`DEFENCES`. Training, budgets, attacks, reports and the command line ask the object and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedkge.accounting.promises import Promise
from fedkge.base.registry import look_up
from fedkge.configuration import OPTIONS, Configuration, known_options
from fedkge.defences.defence import Defence
from fedkge.defences.noisy_copy.defence import NoisyCopyDefence
from fedkge.defences.noisy_steps.defence import NoisySteps
from fedkge.defences.noisy_steps.presets import DP_FLAMES, DP_FLAMES_ADAPTIVE, DPSGD, OWN, OWN_BY_MODEL
from fedkge.defences.none.defence import Undefended

__all__ = [
    "DEFENCES",
    "OPTIONS",
    "Defence",
    "check_defence",
    "chosen_defence",
    "parse",
    "promised_defence",
    "with_defence",
]

DEFENCES: dict[str, Defence] = {
    defence.name: defence
    for defence in (
        Undefended(),
        NoisySteps("dpsgd", DPSGD),
        NoisySteps("dp-flames", DP_FLAMES),
        NoisySteps("dp-flames-adaptive", DP_FLAMES_ADAPTIVE),
        NoisySteps("noisy-steps", OWN, OWN_BY_MODEL, chosen_by=("noise",)),
        NoisyCopyDefence(),
    )
}
"""Every defence by the name of its option value."""
OPTIONS.take_kinds(DEFENCES)
"""Every option, those of all defences among them, is known from here on."""


def with_defence(values: Mapping[str, Any]) -> dict[str, Any]:
    """The flat options, with hyphens, completed by what their defence sets where they do not say otherwise.

    Without a name, a budget means `recommended`, and noise means `noisy-steps`: a copy has no steps to add it to.

    >>> with_defence({"epsilon": 8.0, "batch-size": 512})["batch-size"]
    512
    >>> with_defence({"epsilon": 8.0})["defence"], with_defence({"epsilon": 8.0, "noise": 3.0})["defence"]
    ('recommended', 'noisy-steps')
    """
    name = values.get("defence")
    if name is None or name == "":  # a number, also 0, is refused by the look-up
        given = {key for key, value in values.items() if value is not None}
        asked = (each.name for each in DEFENCES.values() if given.intersection(each.chosen_by))
        name = next(asked, OPTIONS["defence"].info.default)
    return {**look_up(DEFENCES, name, "defence").presets(values), **values, "defence": name}


def parse(values: Mapping[str, Any]) -> Configuration:
    """A configuration from flat options, completed by their defence. An unknown key is an error that names the
    nearest; so is an option of another defence.

    >>> parse({"batch-size": 32}).training.batch_size
    32
    >>> parse({"epsilon": 8.0, "clip": 1.0})
    Traceback (most recent call last):
    ...
    fedkge.base.errors.ConfigurationError: configuration: the defence recommended does not take clip: leave clip \
out, or choose --defence dpsgd or dp-flames or dp-flames-adaptive or noisy-steps
    """
    return Configuration.of(**with_defence(known_options(values)))


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
