"""The names in the registries, for help texts. Registries import heavy libraries, so help reads them on request."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from typer.core import TyperCommand, TyperOption

REGISTRIES = {
    "model": ("fedkge.models", "MODELS"),
    "optimiser": ("fedkge.models.optimisers", "OPTIMISERS"),
    "strategy": ("fedkge.runs.strategies", "STRATEGIES"),
    "aggregation": ("fedkge.federation.aggregation", "AGGREGATIONS"),
    "defence": ("fedkge.defences", "DEFENCES"),
    "selection": ("fedkge.mechanisms", "SELECTIONS"),
    "noise_schedule": ("fedkge.mechanisms", "SCHEDULES"),
    "attack": ("fedkge.experiments.attacking", "known_attacks"),
}
"""The module and the name of the registry behind each option."""


def registered_names(option: str) -> tuple[str, ...]:
    """The values of an option that names an entry of a registry; empty for other options.

    >>> registered_names("aggregation")
    ('mean', 'weighted')
    """
    if option not in REGISTRIES:
        return ()
    module, name = REGISTRIES[option]
    registry = getattr(import_module(module), name)
    return tuple(registry() if callable(registry) else registry)


class RegisteredHelp(TyperCommand):
    """A command whose help lists the registered names of each option that takes one."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help with the names."""
        for parameter in self.params:
            if isinstance(parameter, TyperOption):
                names = registered_names(parameter.opts[0].removeprefix("--").replace("-", "_"))
                parameter.help = f"{parameter.help} One of: {', '.join(names)}." if names else parameter.help
        super().format_help(ctx, formatter)
