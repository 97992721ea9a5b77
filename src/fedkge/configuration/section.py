"""What all sections share: their base class, and who may set an option, written beside the option itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pydantic import BaseModel, ConfigDict


def kebab(name: str) -> str:
    """An option's name as people write it.

    >>> kebab("batch_size")
    'batch-size'
    """
    return name.replace("_", "-")


class Section(BaseModel):
    """One section of a configuration: frozen, with hyphens in files, and without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True, allow_inf_nan=False
    )


class Who(Enum):
    """Who decides about an option in a federation between machines."""

    SERVER = "the server"
    """The server proposes a value. A site accepts it within its limits."""
    SITE = "the site"
    """The privacy of the site depends on it. The site sets it under [privacy] in site.toml."""
    SERVER_ALONE = "the server, for itself"
    """It concerns the server only. Sites neither set nor see it."""
    NOBODY = "not set"
    """It has no place in a federation between machines, or another key of site.toml says it."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Who decides about an option, and why that is safe."""

    who: Who
    why: str


class Mark(Enum):
    """What else holds for an option."""

    MAY_CHANGE = "may change"
    """It may be changed in a run's config.toml before the run is resumed."""
    NO_EFFECT = "no effect"
    """It does not change the result of a run."""
    IS_PATH = "path"
    """It names files. Reports show the last part of the path only."""


@dataclass(frozen=True, slots=True)
class Flag:
    """The option's flat name (flag, keyword argument), where it is not the key in the section."""

    name: str


def by_server(why: str) -> Decided:
    """The server proposes the value."""
    return Decided(Who.SERVER, why)


def by_server_alone(why: str) -> Decided:
    """The server sets the value and tells nobody."""
    return Decided(Who.SERVER_ALONE, why)


def by_nobody(why: str) -> Decided:
    """Neither a proposal nor [privacy] in site.toml may hold it."""
    return Decided(Who.NOBODY, why)


BY_SITE = Decided(Who.SITE, "[privacy] in site.toml")
