"""Search for good training options by validation triples, with Optuna's TPE sampler.

Every trial looks at the validation triples, and the next trial depends on what the last one found. Under a defence that
would be a release which no budget pays for, so `tune` refuses: tune on a public graph, then train privately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, Unpack

import numpy as np

from fedkge.api.opening import Data, shards_of
from fedkge.api.options import TrainOptions
from fedkge.api.training import check, start
from fedkge.base.errors import ConfigurationError, DataError, NumericalError, PrivacyError, UnavailableError
from fedkge.base.tabular import Cell, Row, Tabular
from fedkge.configuration import Configuration
from fedkge.defences import OPTIONS, chosen_defence, parse
from fedkge.evaluation.ranks import weighted_metrics
from fedkge.graph import Graph, no_triples
from fedkge.graph.split import Shards
from fedkge.runs.run import scorer_of

METRIC = "both.realistic.mrr"
"""What is made as large as possible: the filtered MRR of the validation triples, both sides, all clients together."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`: whole ones if both ends are. `log` searches their orders of magnitude."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values."""

    values: tuple[Cell, ...]


Space: TypeAlias = Mapping[str, Range | Choice]
"""What is searched: by the name of a training option."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One training: the options that were tried, and the MRR on validation triples; NaN where the model diverged."""

    number: int
    options: Mapping[str, Cell]
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuned(Tabular):
    """What a search found. `options` are those of the best trial, ready for `fk.train(data, **tuned.options)`."""

    trials: tuple[Trial, ...]
    fixed: TrainOptions

    shown: ClassVar[Mapping[str, str]] = {}

    @property
    def best(self) -> Trial:
        """The trial with the highest MRR on validation triples; the earliest among equals."""
        return max(self.trials, key=lambda trial: -math.inf if math.isnan(trial.value) else trial.value)

    @property
    def options(self) -> TrainOptions:
        """The given options with those of the best trial."""
        return TrainOptions(**{**self.fixed, **self.best.options})  # type: ignore[typeddict-item]

    def title(self) -> str:
        """The best result."""
        found = ", ".join(f"{name} {value}" for name, value in _rounded(self.best.options).items())
        return f"{len(self.trials)} trials; best validation MRR {self.best.value:.4f} with {found}"

    def rows(self) -> list[Row]:
        """One row per trial, the best first."""
        order = sorted(self.trials, key=lambda trial: (math.isnan(trial.value), -trial.value, trial.number))
        return [{"trial": trial.number, "valid MRR": trial.value, **trial.options} for trial in order]


def tune(
    data: Data,
    *,
    trials: int = 20,
    space: Space | None = None,
    progress: Callable[[Trial], None] = lambda _: None,
    **options: Unpack[TrainOptions],
) -> Tuned:
    """Train `trials` times with other options and keep those that rank validation triples best.

    `options` are fixed; `space` says what to search. Without it that is `default_space` of the model, less `options`.
    Test triples are never ranked. With `seed` the search repeats itself. Needs Optuna: `pip install 'fedkge[tune]'`.

    >>> from fedkge.graph.synthetic import synthetic_graph
    >>> graph = synthetic_graph(60, 4, 400, seed=1)
    >>> search = {"learning_rate": Range(1e-3, 1e-1, log=True)}
    >>> tuned = tune(graph, trials=2, space=search, rounds=2, dimension=8, negatives=8, seed=3)
    >>> sorted(tuned.options)
    ['dimension', 'learning_rate', 'negatives', 'rounds', 'seed']
    """
    name = data if isinstance(data, str) else data.name
    clients = {"clients": len(data)} if isinstance(data, Shards) else {}
    configuration = parse({"data": name, "seed": 0, **clients, **options})
    default = {option: domain for option, domain in default_space(configuration).items() if option not in options}
    searched = default if space is None else space
    _check(configuration, searched, trials, options)
    graphs = tuple(_without_test(graph) for graph in shards_of(data, configuration).graphs)
    if not any(len(graph.valid) for graph in graphs):
        raise DataError(f"{name}: expected validation triples to tune by, got none: add a `valid` file")
    study = _study(configuration.experiment.seed or 0)
    found = []
    for number in range(trials):
        asked = study.ask()
        chosen = {option: _suggested(asked, option, domain) for option, domain in searched.items()}
        value = _valid_mrr(graphs, parse({"data": name, "seed": 0, **clients, **options, **chosen}))
        study.tell(asked, -1.0 if math.isnan(value) else value)
        found.append(Trial(number, chosen, value))
        progress(found[-1])
    return Tuned(tuple(found), options)


def default_space(configuration: Configuration) -> dict[str, Range | Choice]:
    """What is worth searching for a model: learning rate, negatives, and margin or regularisation.

    >>> sorted(default_space(Configuration.of(model="distmult")))
    ['learning_rate', 'negatives', 'regularisation', 'temperature']
    """
    common: dict[str, Range | Choice] = {
        "learning_rate": Range(1e-4, 1e-1, log=True),
        "negatives": Choice((32, 64, 128, 256)),
        "temperature": Choice((0.0, 0.5, 1.0)),
    }
    distance = scorer_of(configuration).comparison.is_distance
    own: dict[str, Range | Choice] = (
        {"margin": Range(2.0, 24.0)} if distance else {"regularisation": Range(1e-8, 1e-3, log=True)}
    )
    return {**common, **own}


def _check(configuration: Configuration, space: Space, trials: int, options: TrainOptions) -> None:
    check(configuration)
    if chosen_defence(configuration).keeps_ledger:
        raise PrivacyError(
            f"tune: expected no defence, got {configuration.privacy.defence!r}: every trial would release something "
            "about the validation triples that no budget pays for. Tune on a public graph, then train privately with "
            "its options"
        )
    if not space:
        raise ConfigurationError("tune: expected options to search, got none: name some in `space`, or fix fewer")
    if trials < 1:
        raise ConfigurationError(f"trials: expected a number >= 1, got {trials}")
    if both := sorted(set(space) & set(options)):
        raise ConfigurationError(f"tune: expected an option to be fixed or searched, got both for {', '.join(both)}")
    if wrong := sorted(name for name in space if name in OPTIONS and OPTIONS[name].section == "privacy"):
        raise PrivacyError(f"tune: expected no option of a defence in the space, got {', '.join(wrong)}")
    parse({"data": configuration.data.source, **{name: _first(domain) for name, domain in space.items()}})


def _first(domain: Range | Choice) -> Cell:
    return domain.low if isinstance(domain, Range) else domain.values[0]


def _study(seed: int) -> Any:
    try:
        import optuna  # noqa: PLC0415 (an optional dependency)
    except ImportError as error:
        raise UnavailableError("tune: expected Optuna, which is not installed: `pip install 'fedkge[tune]'`") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))


def _suggested(trial: Any, name: str, domain: Range | Choice) -> Cell:
    if isinstance(domain, Choice):
        chosen: Cell = trial.suggest_categorical(name, domain.values)
        return chosen
    suggest = trial.suggest_int if isinstance(domain.low, int) and isinstance(domain.high, int) else trial.suggest_float
    number: float = suggest(name, domain.low, domain.high, log=domain.log)
    return number


def _without_test(graph: Graph) -> Graph:
    """The graph with its test triples moved to those that only filter a ranking."""
    return replace(graph, test=no_triples(), elsewhere=np.concatenate([graph.elsewhere, graph.test]))


def _valid_mrr(graphs: tuple[Graph, ...], configuration: Configuration) -> float:
    try:
        evaluations = start(configuration, graphs).evaluate(
            "valid", controls=False, threads=configuration.training.threads
        )
    except NumericalError:
        return math.nan
    if not evaluations:
        raise DataError("tune: expected validation triples that are not in train too, got none: use another split")
    return weighted_metrics([(len(one.ranking), one.metrics()) for one in evaluations.values()])[METRIC]


def _rounded(options: Mapping[str, Cell]) -> dict[str, str]:
    return {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in options.items()}
