"""Command-line options made from the sections, so that each option is written down once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from fedkge.configuration import Option, kebab, read_toml
from fedkge.defences import OPTIONS

_SIGNS = ((Ge, "ge", "at least"), (Gt, "gt", "above"), (Le, "le", "at most"), (Lt, "lt", "below"))


def flag_of(field: str) -> str:
    """The option's name.

    >>> flag_of("batch_size")
    '--batch-size'
    """
    return "--" + kebab(field)


def limits_of(info: FieldInfo) -> str:
    """The limits in words, blank when there are none.

    >>> limits_of(OPTIONS["fraction"].info)
    'above 0, at most 1'
    """
    found = [
        f"{words} {getattr(limit, attribute):g}"
        for limit in info.metadata
        for kind, attribute, words in _SIGNS
        if isinstance(limit, kind)
    ]
    return ", ".join(found)


def choices_of(info: FieldInfo) -> tuple[str, ...]:
    """The values of an option that has few.

    >>> choices_of(OPTIONS["corrupt"].info)
    ('tail', 'head', 'both')
    """
    return get_args(info.annotation) if get_origin(info.annotation) is Literal else ()


def default_of(info: FieldInfo) -> str:
    """The default as a person reads it, blank for "nothing".

    >>> default_of(OPTIONS["learning_rate"].info)
    '0.001'
    """
    if info.default is None or info.default == "":
        return ""
    if isinstance(info.default, bool):
        return "yes" if info.default else "no"
    return f"{info.default:g}" if isinstance(info.default, float) else str(info.default)


def with_configuration(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose argument `options` becomes one flag per option, grouped by section.

    The verb gets what was given on the command line, and only that, as a dictionary with configuration keys.
    """
    hints = get_type_hints(verb, include_extras=True)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in inspect.signature(verb).parameters.items()
        if name != "options"
    ]
    made = list(_parameters())
    names = {parameter.name for parameter in made}

    @functools.wraps(verb)
    def wrapper(**values: Any) -> None:
        given = {name: values[name] for name in names if values.get(name) is not None}
        rest = {name: value for name, value in values.items() if name not in names}
        verb(options={kebab(name): value for name, value in given.items()}, **rest)

    wrapper.__signature__ = inspect.Signature([*made, *own])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*made, *own)}
    del wrapper.__wrapped__
    return wrapper


def _parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_type_of(option.info) | None, _flag(option)],
        )
        for name, option in OPTIONS.items()
    ]


def _type_of(info: FieldInfo) -> Any:
    """What the command line parses; pydantic checks the value afterwards, for flags and files alike."""
    if choices_of(info):
        return str
    arguments = [part for part in get_args(info.annotation) if part is not type(None)]
    return arguments[0] if arguments else info.annotation


def _flag(option: Option) -> Any:
    info = option.info
    default = default_of(info)
    facts = ", ".join(part for part in (f"default {default}" if default else "", limits_of(info)) if part)
    text = f"{info.description} ({facts})" if facts else str(info.description)
    flag = flag_of(option.name)
    declaration = f"{flag}/--no-{flag[2:]}" if _type_of(info) is bool else flag
    choices = choices_of(info)
    metavar = "|".join(choices) if choices else None
    return typer.Option(
        declaration, help=text, metavar=metavar, show_default=False, rich_help_panel=option.section.capitalize()
    )


def given_options(config: Path | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a TOML file and of the command line, by their names with hyphens; flags take precedence."""
    return {**(read_toml(config) if config else {}), **flags}
