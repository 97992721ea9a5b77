"""Every option of a training run, once: its name, its default, its limits and what it means.

The command line makes its flags from this class, configuration files use the same names, and the resolved
configuration is saved with each run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedkge.base.errors import ConfigurationError
from fedkge.base.plain_files import read_toml_table
from fedkge.base.registry import near
from fedkge.configuration.presets import with_defence


def kebab(name: str) -> str:
    """An option's name as people write it.

    >>> kebab("batch_size")
    'batch-size'
    """
    return name.replace("_", "-")


CHANGEABLE = frozenset(
    {
        "threads",
        "rounds",
        "evaluate_every",
        "validation_triples",
        "patience",
        "record",
        "minimum_clients",
        "largest_row_norm",
    }
)
"""Options that may be changed in a run's config.toml before it is resumed."""


class Configuration(BaseModel):
    """A training run. Defaults are the paper's where it names one (batch, dimension, negatives, rate, margin).

    >>> Configuration(model="rotate", rounds=5).dimension
    128
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True, allow_inf_nan=False
    )

    data: str = Field("demo", description="Named data set, file or folder.")
    columns: str = Field("", description="Names of the head, relation and tail columns of a CSV or Parquet file.")
    skip_header: bool | None = Field(
        None, description="TSV: skip the first line of each file; --no-skip-header reads it as a triple."
    )
    model: str = Field("transe", description="transe, rotate, distmult or complex.")
    dimension: int = Field(128, ge=1, description="Embedding dimension (complex numbers for RotatE and ComplEx).")
    margin: float = Field(10.0, gt=0, description="Margin of the distance models; also sets the range of start values.")
    norm: int = Field(1, ge=1, le=2, description="Distance of TransE: 1 or 2.")

    clients: int = Field(1, ge=1, description="Number of clients; one graph is a federation of one.")
    split: Literal["entity", "relation", "triple"] = Field("entity", description="How triples are dealt to clients.")
    overlap: float | None = Field(
        None, ge=0, le=1, description="Share of the other clients' entities that each client also gets."
    )
    strategy: str = Field("fede", description="fede (share entities), fedr (share relations), isolated or pooled.")
    aggregation: Literal["mean", "weighted"] = Field(
        "mean", description="Mean over owners, or weighted by triples; a claim far above the others' counts in part."
    )
    fraction: float = Field(1.0, gt=0, le=1, description="Share of the clients that take part in each round.")
    minimum_clients: int | None = Field(
        None,
        ge=1,
        description="Stop when fewer clients deliver in a round; without it 1, and a full disk stops the run at once.",
    )
    largest_row_norm: float = Field(1000.0, gt=0, description="Refuse an upload with a longer row than this.")

    rounds: int = Field(30, ge=1, description="Communication rounds.")
    local_epochs: int = Field(3, ge=1, description="Passes over a client's triples per round.")
    local_steps: int = Field(0, ge=0, description="Steps per round instead of epochs; 0 means epochs.")
    optimiser: str = Field("lazy-adam", description="lazy-adam, adam, adagrad or sgd.")
    optimiser_state: Literal["reset", "kept"] = Field("reset", description="Per round: reset as FedE does, or kept.")
    learning_rate: float = Field(1e-3, gt=0, description="Learning rate.")
    learning_rate_decay: float = Field(
        1.0, gt=0, le=1, description="The learning rate is multiplied by this per round."
    )
    batch_size: int = Field(64, ge=1, description="Triples per step.")
    negatives: int = Field(256, ge=1, description="Negatives per triple.")
    negative_group: int = Field(64, ge=1, description="Triples that share their negatives; 1 means independent ones.")
    corrupt: Literal["tail", "head", "both"] = Field("both", description="Side that negatives replace; both: in turns.")
    filter_negatives: bool = Field(False, description="Draw again what is a known triple (needs negative-group 1).")
    temperature: float = Field(1.0, ge=0, description="Self-adversarial temperature; 0 weighs negatives alike.")
    regularisation: float = Field(0.0, ge=0, description="Weight of the squared norms of each positive triple's rows.")

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

    evaluate_every: int = Field(5, ge=0, description="Validate every so many rounds; 0 only ranks at the end.")
    validation_triples: int = Field(0, ge=0, description="Validate on a fixed sample of this size; 0 takes all.")
    patience: int = Field(0, ge=0, description="Stop after so many validations without a better MRR; 0 never stops.")
    keep_leaked: bool = Field(
        False, description="Score held-out triples that are in train too; otherwise they are counted and left out."
    )
    record: str = Field("none", description="Rounds kept in the transcript: none, all, every:N, or a list like 1,5,10.")
    canaries: int = Field(
        0, ge=0, description="Triples to attack (random ones: design C; real ones: design R); half are trained on."
    )
    canary_coins: Literal["half", "independent", "seeded"] = Field(
        "half", description="Who is put there: a fixed half; or, for an audit, one system coin each, or a seeded one."
    )
    canary_source: Literal["shared", "victim", "rare", "likely", "real"] = Field(
        "shared",
        description="Canaries: random triples of names that victim and adversary share, of the victim's names, of its "
        "rare ones; likely triples of its names; or its real triples, of which half are left out.",
    )
    victim: str = Field("client-0", description="The client whose triples attacks try to infer.")
    adversary: str = Field("client-1", description="The client that attacks, in attacks by a client or a collusion.")
    inline_attack: Literal["none", "cia"] = Field(
        "none", description="Let the adversary really attack the canaries within the federation: none or cia."
    )
    seed: int | None = Field(None, ge=0, description="Research seed; without one it is drawn and saved with the run.")
    threads: int = Field(0, ge=0, description="Cores to use; 0 means all. The result does not depend on it.")
    init: str = Field(
        "", description="Start from the vectors in this run directory or .safetensors/.parquet/.txt file."
    )

    def to_toml(self) -> str:
        """The configuration as TOML that `read_toml` understands.

        >>> import tomllib
        >>> parse(tomllib.loads(Configuration(rounds=3).to_toml())).rounds
        3
        """
        values = {key: value for key, value in self.model_dump(by_alias=True).items() if value is not None}
        return tomlkit.dumps(values)

    def steps_per_round(self, triples: int) -> int:
        """How many steps a client with so many triples takes in a round.

        >>> Configuration(local_epochs=3, batch_size=64).steps_per_round(triples=100)
        6
        """
        return self.local_steps or self.local_epochs * -(-triples // self.batch_size)

    @property
    def least_clients(self) -> int:
        """How many clients must deliver a valid upload in a round."""
        return self.minimum_clients or 1

    @property
    def digest(self) -> str:
        """A hash of what decides the result: threads do not."""
        return self._hash(frozenset({"threads"}))

    @property
    def identity(self) -> str:
        """A hash of what may not change while a run goes on: all but how long, how often and how strictly."""
        return self._hash(CHANGEABLE)

    # Defaults are left out, so that an option which a later version adds does not change the hash of older runs.
    def _hash(self, without: frozenset[str]) -> str:
        values = self.model_dump(exclude=set(without), exclude_defaults=True)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def parse(values: Mapping[str, Any]) -> Configuration:
    """A configuration from keys and values, completed by their defence; an unknown key is an error that names the
    nearest.

    >>> parse({"batch-size": 32}).batch_size
    32
    """
    return restore(with_defence({kebab(key): value for key, value in _known(values).items()}))


def restore(values: Mapping[str, Any]) -> Configuration:
    """The configuration that was saved as these keys and values, exactly as it was."""
    try:
        return Configuration.model_validate({kebab(key): value for key, value in _known(values).items()})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}, got {item['input']!r:.80}"
            for item in error.errors()
        )
        raise ConfigurationError(f"configuration: {problems}") from error


def _known(values: Mapping[str, Any]) -> Mapping[str, Any]:
    known = {kebab(name) for name in Configuration.model_fields}
    seen = set[str]()
    for key, value in values.items():
        if kebab(key) in seen:
            raise ConfigurationError(f"configuration: expected {kebab(key)} once, got it again as {key!r}")
        seen.add(kebab(key))
        if isinstance(value, bool) and kebab(key) in known - _switches():
            raise ConfigurationError(f"configuration: {kebab(key)}: expected no switch, got {str(value).lower()}")
        if kebab(key) not in known:
            close = near(kebab(key), known)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(sorted(known))}"
            raise ConfigurationError(f"unknown configuration key {key!r}: {hint}")
    return values


def _switches() -> set[str]:
    """The options that are on or off."""
    kinds = {kebab(name): info.annotation for name, info in Configuration.model_fields.items()}
    return {name for name, kind in kinds.items() if kind is bool or kind == bool | None}


def read_toml(path: Path) -> dict[str, Any]:
    """The keys and values of a TOML file, without the tables that fedkge adds when it saves a run."""
    values = read_table(path, "no such configuration file")
    values.pop("provenance", None)
    return values


def read_table(path: Path, absent: str) -> dict[str, Any]:
    """What a TOML file holds; `absent` says what is wrong where there is none, and what to do."""
    if not os.path.lexists(path):
        raise ConfigurationError(f"{path}: {absent}")
    return read_toml_table(path, ConfigurationError)
