"""Options from files: sections become flat options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedkge.base.errors import ConfigurationError
from fedkge.base.plain_files import read_toml_table
from fedkge.base.registry import near
from fedkge.configuration.configuration import sections_as_toml
from fedkge.configuration.options import OPTIONS, SECTIONS, Option, nearest
from fedkge.configuration.section import kebab

NOT_OPTIONS = "provenance"
"""The table that fedkge adds when it saves a run."""


def read_toml(path: Path) -> dict[str, Any]:
    """The options in a TOML file with sections, by their flat names with hyphens."""
    tables = read_table(path, "no such configuration file")
    tables.pop(NOT_OPTIONS, None)
    try:
        return flat_options(tables)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def flat_options(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The options in sections, by their flat names with hyphens.

    >>> flat_options({"model": {"name": "rotate"}, "training": {"batch-size": 32}})
    {'model': 'rotate', 'batch-size': 32}
    >>> flat_options({"training": {"epsilon": 8}})
    Traceback (most recent call last):
    ...
    fedkge.base.errors.ConfigurationError: [training] epsilon: expected it in another section; write epsilon in \
[privacy]
    """
    outside = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    if outside:
        raise ConfigurationError(
            f"expected options in sections, got {', '.join(outside)} outside of any; write\n\n"
            + sections_as_toml(outside).rstrip()
        )
    made: dict[str, Any] = {}
    for section, table in tables.items():
        if section not in SECTIONS:
            raise ConfigurationError(f"unknown section [{section}]: {_section_hint(section)}")
        for key, value in table.items():
            name = kebab(_option_in(section, key).name)
            if name in made:
                raise ConfigurationError(f"[{section}] {key}: expected it once, got it twice")
            made[name] = value
    return made


def _option_in(section: str, key: str) -> Option:
    """The option that this key of this section means."""
    field, own = key.replace("-", "_"), {}
    for option in OPTIONS.values():
        if option.section == section:
            own[option.key] = option
    if field in own:
        return own[field]
    if field in OPTIONS:
        found = OPTIONS[field]
        problem = "another key" if found.section == section else "it in another section"
        raise ConfigurationError(f"[{section}] {key}: expected {problem}; write {found.place}")
    raise ConfigurationError(f"unknown key {key!r} in [{section}]: {nearest(key, section)}")


def _section_hint(section: str) -> str:
    if section.replace("-", "_") in OPTIONS:
        return f"write {OPTIONS[section.replace('-', '_')].place}"
    close = near(section, SECTIONS)
    return f"did you mean [{close[0]}]?" if close else f"known: {', '.join(f'[{name}]' for name in SECTIONS)}"


def read_table(path: Path, absent: str) -> dict[str, Any]:
    """What a TOML file holds; `absent` says what is wrong where there is none, and what to do."""
    if not os.path.lexists(path):
        raise ConfigurationError(f"{path}: {absent}")
    return read_toml_table(path, ConfigurationError)
