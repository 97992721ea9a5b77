"""The options of a training run in six sections.

Files have the sections. Flags and keyword arguments are flat: every option's flat name is unique, and `of`, `updated`
and `as_options` translate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import tomlkit
from pydantic import ValidationError

from fedkge.base.errors import ConfigurationError
from fedkge.configuration.data import DataSection
from fedkge.configuration.experiment import ExperimentSection
from fedkge.configuration.federation import FederationSection
from fedkge.configuration.model import ModelSection
from fedkge.configuration.options import CHANGEABLE, OPTIONS, SECTIONS, by_section, find_option, known_options, marked
from fedkge.configuration.privacy import PrivacySection
from fedkge.configuration.section import Mark, kebab
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
        """A configuration from flat options, exactly as they are: `parse` also adds what their defence sets.

        >>> Configuration.of(batch_size=32).training.batch_size
        32
        """
        given, sections, problems = known_options(options), {}, []
        for section, found in by_section(given).items():
            values = {kebab(option.key): given[kebab(option.name)] for option in found}
            try:
                sections[section] = SECTIONS[section].model_validate(values)
            except ValidationError as error:
                problems += _problems(error, {kebab(option.key): kebab(option.name) for option in found})
        if problems:
            raise ConfigurationError(f"configuration: {'; '.join(problems)}")
        return cls(**sections)  # type: ignore[arg-type]

    def updated(self, **options: Any) -> Self:
        """The same with other values for some flat options. Values are not checked: they come from code.

    defence: str = Field(
        "none",
        description="none, recommended (by --epsilon), noisy-steps (by --noise), dpsgd, dp-flames, dp-flames-adaptive.",
    )
    epsilon: float | None = Field(
        None, gt=0, description="Privacy budget of each client: calibrates the noise, and no client goes beyond it."
    )
    delta: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Delta of (epsilon, delta); without it the smaller of 1e-5 and 1/(10 n), n the public size.",
    )
    allow_large_delta: bool = Field(False, description="Accept a delta of 1/n or more, which may publish a triple.")
    noise: float | None = Field(
        None, gt=0, description="Noise multiplier sigma of noisy steps; without it what --epsilon needs for all rounds."
    )
    clip: float = Field(1.2, gt=0, description="C1: longest gradient of one triple over all of its rows.")
    row_clip: float | None = Field(None, gt=0, description="C2: longest entity row in the gradient of one triple.")
    normalise: bool = Field(False, description="Stretch short gradients to C1 too: for models with tiny gradients.")
    private_negatives: Literal["inside", "public"] = Field(
        "inside", description="Corruptions inside the clipped gradient of each triple, or of public (head, relation)s."
    )
    public_graph: str = Field("", description="Graph whose (head, relation)s are public negatives; else uniform ones.")
    selection: str = Field("dense", description="Rows that get gradient and noise: dense, adafest, fest, ptr, ...")
    selection_share: float = Field(0.2, gt=0, lt=1, description="Share of the privacy cost that pays for selection.")
    selection_threshold: float = Field(2.0, description="Adafest: release the rows whose noisy count reaches this.")
    selection_rows: float = Field(0.5, gt=0, le=1, description="Fest: share of the rows that is chosen, once.")
    test_failure: float = Field(1e-8, gt=0, lt=1, description="Ptr: chance per step that the test wrongly passes.")
    noise_step: float = Field(
        0.0, ge=0, description="SGD: learn more slowly where one step's noise would move a number by more than this."
    )
    noise_schedule: str = Field(
        "constant", description="Noise per round: constant, a preset decay, or decay by public validation MRR."
    )
    noise_decay: float = Field(0.95, gt=0, le=1, description="Factor by which the noise falls (eta).")
    least_gain: float = Field(1e-3, ge=0, description="Schedule `validation`: MRR gain below which it falls (Delta).")
    public_validation: str = Field("", description="Schedule `validation`: graph whose public triples are ranked.")
    count_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for noisy counts, whose popularity is added to scores; 0: none.",
    )
    copy_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for a noisy copy of the graph, which is trained on instead; 0: none.",
    )
    sparse_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="A copy's count-share where a client has fewer than 1.8 triples per entity; 0: the same as others.",
    )
    count_types: int = Field(8, ge=1, description="Types of entities by which answers are counted apart.")
    count_weight: float = Field(
        1.0, gt=0, description="Weight of the counts' log-probability beside the score; of a copy, times what it finds."
    )
    public_triples: int = Field(
        0,
        ge=0,
        description="Public number of triples per client; 0 releases each client's number once, with noise, and charges"
        " it.",
    )
    names: Literal["from-triples", "listed", "threshold"] = Field(
        "from-triples",
        description="Entity names: those of the triples, a list that no triple decides, or those that enough mention.",
    )
    names_share: float = Field(
        0.25, gt=0, lt=1, description="Names `threshold`: share of epsilon that pays for the release of names."
    )
    public_init: bool = Field(False, description="The vectors of --init are public; a defence refuses them otherwise.")
    accountant: Literal["pld", "rdp"] = Field("pld", description="Accountant of the budget: pld (tight) or rdp.")
    noise_seed: int | None = Field(
        None, ge=0, description="Research seed of the noise: repeatable, and therefore NOT private."
    )

    def option(self, name: str) -> Any:
        """The value of one option by its flat name.

        >>> Configuration().option("model")
        'transe'
        """
        found = find_option(name)
        return getattr(getattr(self, found.section), found.key)

    def as_options(self) -> dict[str, Any]:
        """All options by their flat names, as `of` takes them.

        >>> Configuration.of(**Configuration.of(rounds=3).as_options()) == Configuration.of(rounds=3)
        True
        """
        return {name: self.option(name) for name in OPTIONS}

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
        return self._hash(CHANGEABLE)

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


def _problems(error: ValidationError, names: Mapping[str, str]) -> list[str]:
    """What is wrong, under the flat names of the options."""
    return [
        f"{'.'.join(names.get(str(part), str(part)) for part in item['loc'])}: {item['msg']}, got {item['input']!r:.80}"
        for item in error.errors()
    ]
