"""The names in the registries, for help texts. Registries import heavy libraries, so help reads them on request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperOption


def _registries() -> dict[str, Iterable[str]]:
    from fedkge.defences import DEFENCES  # noqa: PLC0415 (heavy, like all imports here)
    from fedkge.experiments.attacking import known_attacks  # noqa: PLC0415
    from fedkge.federation.aggregation import AGGREGATIONS  # noqa: PLC0415
    from fedkge.mechanisms import SCHEDULES, SELECTIONS  # noqa: PLC0415
    from fedkge.models import MODELS  # noqa: PLC0415
    from fedkge.models.optimisers import OPTIMISERS  # noqa: PLC0415
    from fedkge.runs.strategies import STRATEGIES  # noqa: PLC0415

    return {
        "model": MODELS,
        "optimiser": OPTIMISERS,
        "strategy": STRATEGIES,
        "aggregation": AGGREGATIONS,
        "defence": DEFENCES,
        "selection": SELECTIONS,
        "noise_schedule": SCHEDULES,
        "attack": known_attacks(),
    }


def registered_names(option: str) -> tuple[str, ...]:
    """The values of an option that names an entry of a registry; empty for other options.

    >>> registered_names("aggregation")
    ('mean', 'weighted')
    """
    return tuple(_registries().get(option, ()))


def _option(parameter: TyperOption) -> str:
    return parameter.opts[0].removeprefix("--").replace("-", "_")


class RegisteredHelp(TyperCommand):
    """A command whose help lists the registered names of each option that takes one."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help with the names."""
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and (names := registered_names(_option(parameter))):
                parameter.help = f"{parameter.help} One of: {', '.join(names)}."
        super().format_help(ctx, formatter)
