"""What an attack is: it says what it needs, and gives one score per candidate triple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import ConfigurationError
from fedkge.graph import Triples
from fedkge.runs.view import Adversary, View

Scores: TypeAlias = NDArray[np.floating[Any]]
"""One score per candidate triple; higher means "in the victim's training set"."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a view must hold for an attack to work on it."""

    adversary: tuple[Adversary, ...]
    auxiliary: bool = False
    rounds: int = 1
    models: tuple[str, ...] = ()
    """Names of the models that it works on; empty means all."""
    because: str = ""
    """Why it does not work on others."""
    published: bool = False
    """Whether this is the paper's own formula, kept for comparison; an audit leaves it out unless it is named."""


class Attack(Protocol):
    """A passive attack. Higher scores mean "in the victim's training set"."""

    @property
    def name(self) -> str:
        """The name of its option value."""
        ...

    @property
    def needs(self) -> Needs:
        """What it needs to see."""
        ...

    def score(self, view: View, triples: Triples) -> Scores:
        """One score per candidate triple, from the view alone."""
        ...


def misfit(attack: Attack, model: str) -> str:
    """What to say when an attack does not work on a model."""
    needs = attack.needs
    why = needs.because or "the model does not fit it"
    return f"attack {attack.name!r} works on {' and '.join(needs.models)}, got a {model} run: {why}"


def check(attack: Attack, view: View) -> None:
    """Refuse, with what to change, a view that lacks what the attack needs."""
    needs = attack.needs
    if view.adversary not in needs.adversary:
        raise ConfigurationError(
            f"attack {attack.name!r} is for {' or '.join(needs.adversary)}, got the view of {view.adversary}"
        )
    if needs.models and view.scorer.name not in needs.models:
        raise ConfigurationError(misfit(attack, view.scorer.name))
    if needs.auxiliary and (view.auxiliary is None or len(view.auxiliary) == 0):
        raise ConfigurationError(f"attack {attack.name!r} needs auxiliary triples: set --auxiliary to at least 1")
    if len(view.rounds) < needs.rounds:
        raise ConfigurationError(
            f"attack {attack.name!r} needs {needs.rounds} recorded round(s), got {len(view.rounds)}: "
            "train with --record all, every:N or a list"
        )
