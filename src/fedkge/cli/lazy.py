"""Commands that are imported when they are called: `fedkge --help` loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fedkge.cli.errors import guarded
from fedkge.cli.registered import RegisteredHelp

Context: TypeAlias = Any
Command: TypeAlias = Any
"""Typer has its own copies of Click's classes, which have no public names."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command: the module that holds it, and the first line of its help.

    The module has a function of the same name, and an `EXAMPLE` that ends the help.
    """

    module: str
    help: str

    def load(self, name: str) -> Command:
        """The command itself, with its options."""
        module = import_module(self.module)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        verb = getattr(module, self.module.rpartition(".")[2])
        alone.command(name, cls=RegisteredHelp, epilog=module.EXAMPLE)(guarded(verb))
        return get_command(alone)


class VerbGroup(TyperGroup):
    """A group that knows its verbs by name and by one line of help, and imports only the one that is called."""

    verbs: ClassVar[Mapping[str, Verb]] = {}
    groups: ClassVar[Mapping[str, type[VerbGroup]]] = {}
    about: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            **{name: TyperCommand(name=name, help=verb.help) for name, verb in self.verbs.items()},
            **{name: kind(name=name, help=kind.about, no_args_is_help=True) for name, kind in self.groups.items()},
        }

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that the arguments begin with, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.verbs:
            command = guarded(self.verbs[name].load)(name)
        return name, command, rest
