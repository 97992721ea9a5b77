"""The options of a training run in six sections.

Files have the sections. Flags and keyword arguments are flat: every option's flat name is unique, and `of`, `updated`
and `as_options` translate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import tomlkit
from pydantic import ValidationError

from fedkge.base.errors import ConfigurationError
from fedkge.configuration.data import DataSection
from fedkge.configuration.experiment import ExperimentSection
from fedkge.configuration.federation import FederationSection
from fedkge.configuration.model import ModelSection
from fedkge.configuration.options import OPTIONS, SECTIONS, Option, by_section, find_option, known_options, marked
from fedkge.configuration.privacy import TAG, PrivacySection
from fedkge.configuration.section import Mark, Section, kebab
from fedkge.configuration.training import TrainingSection


@dataclass(frozen=True, slots=True)
class Configuration:
    """A training run. Defaults are the paper's where it names one (batch, dimension, negatives, rate, margin).

    >>> Configuration.of(model="rotate", rounds=5).training.rounds
    5
    """

    data: DataSection = field(default_factory=DataSection)
    model: ModelSection = field(default_factory=ModelSection)
    training: TrainingSection = field(default_factory=TrainingSection)
    federation: FederationSection = field(default_factory=FederationSection)
    privacy: PrivacySection = field(default_factory=PrivacySection)
    experiment: ExperimentSection = field(default_factory=ExperimentSection)

    @classmethod
    def of(cls, **options: Any) -> Self:
        """A configuration from flat options, exactly as they are: `fedkge.defences.parse` adds what their defence sets.

        >>> Configuration.of(batch_size=32).training.batch_size
        32
        """
        given, sections, problems = known_options(options), {}, []
        for section, found in by_section(given).items():
            values = {kebab(option.key): given[kebab(option.name)] for option in found}
            model = SECTIONS[section]
            if issubclass(PrivacySection, model):
                model = OPTIONS.privacy_section(values.get(TAG, model.model_fields[TAG].default))
                problems += _strangers(found, model, values)
            try:
                sections[section] = model.model_validate(values)
            except ValidationError as error:
                problems += _problems(error, {kebab(option.key): kebab(option.name) for option in found})
        if problems:
            raise ConfigurationError(f"configuration: {'; '.join(problems)}")
        return cls(**sections)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """The options that are not the default, flat: `Configuration.of` takes them back."""
        return f"Configuration.of({', '.join(f'{name}={value!r}' for name, value in self.changed_options().items())})"

    def updated(self, **options: Any) -> Self:
        """The same with other values for some flat options. Values are not checked: they come from code.

        >>> Configuration().updated(rounds=3, epsilon=8.0).privacy.epsilon
        8.0
        """
        for name in options:
            self.option(name)
        sections = {
            section: getattr(self, section).model_copy(update={option.key: options[option.name] for option in found})
            for section, found in by_section(options).items()
        }
        return replace(self, **sections)

    def option(self, name: str) -> Any:
        """The value of one option by its flat name.

        >>> Configuration().option("model")
        'transe'
        """
        found = find_option(name)
        section = getattr(self, found.section)
        if found.key not in type(section).model_fields:
            raise ConfigurationError(_no_option(found, self.privacy.defence))
        return getattr(section, found.key)

    def as_options(self) -> dict[str, Any]:
        """All options of this configuration by their flat names, as `of` takes them.

        >>> Configuration.of(**Configuration.of(rounds=3).as_options()) == Configuration.of(rounds=3)
        True
        """
        found = ((option, getattr(self, option.section)) for option in OPTIONS.values())
        return {
            option.name: getattr(section, option.key)
            for option, section in found
            if option.key in type(section).model_fields
        }

    def changed_options(self) -> dict[str, Any]:
        """The options whose value is not the default, by their flat names.

        >>> Configuration.of(rounds=3, model="transe").changed_options()
        {'rounds': 3}
        """
        return {name: value for name, value in self.as_options().items() if value != OPTIONS[name].info.default}

    def to_toml(self) -> str:
        """The configuration as TOML that `read_toml` understands.

        >>> Configuration.of(rounds=3).to_toml().partition("[training]")[2].split()[:3]
        ['rounds', '=', '3']
        """
        return sections_as_toml({name: value for name, value in self.as_options().items() if value is not None})

    @property
    def digest(self) -> str:
        """A hash of what decides the result: threads do not."""
        return self._hash(marked(Mark.NO_EFFECT))

    @property
    def identity(self) -> str:
        """A hash of what may not change while a run goes on: all but how long, how often and how strictly."""
        return self._hash(marked(Mark.MAY_CHANGE))

    # Defaults are left out, so that an option which a later version adds does not change the hash of older runs.
    def _hash(self, without: frozenset[str]) -> str:
        values = {name: value for name, value in self.changed_options().items() if name not in without}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def sections_as_toml(options: Mapping[str, Any]) -> str:
    """Flat options as a file writes them, in sections.

    >>> print(sections_as_toml({"model": "rotate", "batch-size": 32}))
    [model]
    name = "rotate"
    <BLANKLINE>
    [training]
    batch-size = 32
    <BLANKLINE>
    """
    given = known_options(options)
    tables = {
        section: {kebab(option.key): given[kebab(option.name)] for option in found}
        for section, found in by_section(given).items()
    }
    return tomlkit.dumps(tables)


def _strangers(found: Iterable[Option], model: type[Section], values: dict[str, Any]) -> list[str]:
    """Take what does not belong to this section out of its values; an error for each that says something."""
    taken = [(option, values.pop(kebab(option.key))) for option in found if option.key not in model.model_fields]
    defence = str(values.get(TAG, model.model_fields[TAG].default))
    return [_no_option(option, defence) for option, value in taken if value is not None]


def _no_option(option: Option, defence: str) -> str:
    name, takers = kebab(option.name), " or ".join(OPTIONS.kinds_with(option))
    return f"the defence {defence} does not take {name}: leave {name} out, or choose --defence {takers}"


def _problems(error: ValidationError, names: Mapping[str, str]) -> list[str]:
    """What is wrong, under the flat names of the options."""
    return [
        f"{'.'.join(names.get(str(part), str(part)) for part in item['loc'])}: {item['msg']}, got {item['input']!r:.80}"
        for item in error.errors()
    ]
