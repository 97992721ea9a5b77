"""The table of all options: each has a flat name (flag, keyword argument), a section and a key in that section."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic.fields import FieldInfo

from fedkge.base.errors import ConfigurationError
from fedkge.base.registry import look_up, near
from fedkge.configuration.data import DataSection
from fedkge.configuration.experiment import ExperimentSection
from fedkge.configuration.federation import FederationSection
from fedkge.configuration.model import ModelSection
from fedkge.configuration.privacy import PrivacySection
from fedkge.configuration.section import Decided, Flag, Mark, Section, Who, kebab
from fedkge.configuration.training import TrainingSection

SECTIONS: Mapping[str, type[Section]] = {
    "data": DataSection,
    "model": ModelSection,
    "training": TrainingSection,
    "federation": FederationSection,
    "privacy": PrivacySection,
    "experiment": ExperimentSection,
}
"""[privacy] has the options that every defence takes; `OptionTable` knows those of each defence."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flat name with underscores, its section, its field there, and what the field says about it."""

    name: str
    section: str
    key: str
    info: FieldInfo

    @property
    def decided(self) -> Decided:
        """Who decides about it in a federation between machines; an option without that cannot be imported."""
        return next(mark for mark in self.info.metadata if isinstance(mark, Decided))

    def has(self, mark: Mark) -> bool:
        """Whether the option bears this mark."""
        return mark in self.info.metadata

    @property
    def is_switch(self) -> bool:
        """Whether the option is on or off."""
        return self.info.annotation is bool or self.info.annotation == bool | None

    @property
    def place(self) -> str:
        """Where a file says it.

        >>> OPTIONS["model"].place
        'name in [model]'
        """
        return f"{kebab(self.key)} in [{self.section}]"


def _option(section: str, key: str, info: FieldInfo) -> Option:
    name = next((mark.name for mark in info.metadata if isinstance(mark, Flag)), key)
    option = Option(name, section, key, info)
    if not any(isinstance(mark, Decided) for mark in info.metadata):
        raise TypeError(f"option {option.place}: expected who decides about it, like BY_SITE, got nothing")
    if issubclass(PrivacySection, SECTIONS[section]) and option.decided.who in (Who.SERVER, Who.SERVER_ALONE):
        raise TypeError(f"option {option.place}: expected BY_SITE or by_nobody, got {option.decided.who.value}")
    return option


class Kind(Protocol):
    """What the configuration must know about a defence."""

    @property
    def options(self) -> type[PrivacySection]:
        """Its [privacy] section."""
        ...


class OptionTable(Mapping[str, Option]):
    """Every option by its flat name, in the order of sections and fields.

    The options of [privacy] are a union: each defence has the common ones and its own. `fedkge.defences` says which
    defences there are. Defences may share an option, which then means the same for all of them.
    """

    def __init__(self) -> None:
        self._kinds: Mapping[str, Kind] = {}
        self._tables: dict[tuple[tuple[str, type[PrivacySection]], ...], Mapping[str, Option]] = {}

    def take_kinds(self, kinds: Mapping[str, Kind]) -> None:
        """From now on [privacy] is the section of one of these kinds of defence, by name."""
        self._kinds = kinds

    def privacy_section(self, name: str) -> type[PrivacySection]:
        """The [privacy] section of the defence with this name."""
        return look_up(self._kinds, name, "defence").options if self._kinds else PrivacySection

    def kinds_with(self, option: Option) -> list[str]:
        """The defences that take this option of [privacy]."""
        return [name for name, kind in self._kinds.items() if option.key in kind.options.model_fields]

    def __getitem__(self, name: str) -> Option:
        return self._table()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())

    def _table(self) -> Mapping[str, Option]:
        kinds = tuple((name, kind.options) for name, kind in self._kinds.items())
        if kinds not in self._tables:
            self._tables[kinds] = _table(dict(kinds))
        return self._tables[kinds]


def _table(kinds: Mapping[str, type[PrivacySection]]) -> Mapping[str, Option]:
    made: dict[str, Option] = {}
    for section, model in SECTIONS.items():
        for each in (model, *(kinds.values() if issubclass(PrivacySection, model) else ())):
            for key, info in each.model_fields.items():
                option = _option(section, key, info)
                known = made.get(option.name)
                if known is None:
                    made[option.name] = option
                elif (known.place, repr(known.info)) != (option.place, repr(info)):
                    raise TypeError(f"option {option.place}: expected a name of its own, got that of another")
    return made


OPTIONS = OptionTable()
"""Every option by its flat name."""


def decided_by(who: Who) -> Mapping[str, str]:
    """The options that `who` decides about, with the reason.

    >>> decided_by(Who.SERVER_ALONE)["fraction"]
    'which sites the server asks in a round'
    """
    return {name: option.decided.why for name, option in OPTIONS.items() if option.decided.who is who}


def marked(mark: Mark) -> frozenset[str]:
    """The options that bear this mark.

    >>> marked(Mark.NO_EFFECT)
    frozenset({'threads'})
    """
    return frozenset(name for name, option in OPTIONS.items() if option.has(mark))


def find_option(key: str) -> Option:
    """The option with this flat name, with hyphens or underscores; else an error with the nearest name.

    >>> find_option("batch-sise")
    Traceback (most recent call last):
    ...
    fedkge.base.errors.ConfigurationError: unknown configuration key 'batch-sise': did you mean batch-size in \
[training]?
    """
    found = OPTIONS.get(key.replace("-", "_"))
    if found is not None:
        return found
    raise ConfigurationError(f"unknown configuration key {key!r}: {nearest(key)}")


def nearest(key: str, section: str = "") -> str:
    """What an unknown key may mean: flat names, and the keys of one section.

    >>> nearest("nmae", "model")
    'did you mean name in [model] or names in [privacy]?'
    """
    known = {kebab(name): option for name, option in OPTIONS.items()}
    known |= {kebab(option.key): option for option in OPTIONS.values() if option.section == section}
    close = near(kebab(key), known)
    meant = " or ".join(known[name].place for name in close[:2])
    return f"did you mean {meant}?" if close else f"known: {', '.join(sorted(known))}"


def known_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flat options by their names with hyphens; an error for what is unknown, twice there, or no switch.

    >>> known_options({"batch_size": 32})
    {'batch-size': 32}
    """
    made: dict[str, Any] = {}
    for key, value in values.items():
        option = find_option(key)
        name = kebab(option.name)
        if name in made:
            raise ConfigurationError(f"configuration: expected {name} once, got it again as {key!r}")
        if isinstance(value, bool) and not option.is_switch:
            raise ConfigurationError(f"configuration: {name}: expected a value, got {str(value).lower()}")
        made[name] = value
    return made


def by_section(names: Iterable[str]) -> dict[str, list[Option]]:
    """These options, known by their flat names, under their sections.

    >>> {section: [option.key for option in found] for section, found in by_section(["rounds", "model"]).items()}
    {'model': ['name'], 'training': ['rounds']}
    """
    wanted = {name.replace("-", "_") for name in names}
    made: dict[str, list[Option]] = {}
    for option in OPTIONS.values():
        if option.name in wanted:
            made.setdefault(option.section, []).append(option)
    return made
