"""A defence that a stranger registers in `DEFENCES`, and nowhere else, has flags, a budget, a promise and a report."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

import fedkge as fk
from fedkge.base.errors import ConfigurationError
from fedkge.cli.options import with_configuration
from fedkge.cli.registered import registered_names
from fedkge.configuration import BY_SITE, Configuration, flat_options
from fedkge.defences import DEFENCES, OPTIONS, parse
from fedkge.defences.defence import PublicNumbers
from fedkge.defences.noisy_steps.client import ClientSteps
from fedkge.defences.noisy_steps.defence import NoisySteps
from fedkge.defences.noisy_steps.options import StepOptions
from fedkge.defences.own_options import own_options
from fedkge.mechanisms.events import Charge
from fedkge.report.gather import gather

SHARDS = fk.split(fk.synthetic_graph(entities=60, relations=4, triples=500, seed=1), clients=2, seed=7)
SHORT: dict[str, Any] = {
    "rounds": 2,
    "dimension": 8,
    "batch_size": 32,
    "local_steps": 2,
    "public_triples": 250,
    "evaluate_every": 0,
    "seed": 5,
    "noise_seed": 1,
}


class CautiousOptions(StepOptions):
    """Noisy steps, and how often each is charged."""

    caution: Annotated[int, BY_SITE] = Field(default=2, ge=1, description="How often every step is charged.")


@dataclass(frozen=True)
class CautiousClient(ClientSteps):
    """Charges every step several times."""

    def charges(self, noise: float, first: bool) -> tuple[Charge, ...]:
        return super().charges(noise, first) * own_options(self.options, CautiousOptions).caution


@dataclass(frozen=True)
class Cautious(NoisySteps):
    """A stranger's defence."""

    name: str = "cautious"

    options: ClassVar[type[CautiousOptions]] = CautiousOptions

    def plan(self, options: Configuration, public: PublicNumbers, noise: float) -> CautiousClient:
        return CautiousClient(options, public, noise)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEFENCES, "cautious", Cautious(preset={"clip": 0.7, "negatives": 8}, chosen_by=("caution",)))


def test_its_options_are_parsed_and_completed() -> None:
    options = parse({"caution": 3, "noise": 2.0, "defence": "cautious"})
    assert (options.option("caution"), options.option("clip"), options.training.negatives) == (3, 0.7, 8)
    assert parse({"caution": 3}).privacy.defence == "cautious"
    assert Configuration.of(**flat_options({"privacy": {"defence": "cautious", "caution": 4}})).option("caution") == 4


def test_its_option_is_refused_elsewhere_with_its_name() -> None:
    with pytest.raises(ConfigurationError, match=r"dpsgd does not take caution: .* choose --defence cautious$"):
        parse({"defence": "dpsgd", "epsilon": 8.0, "caution": 3})
    with pytest.raises(ConfigurationError, match="caution: Input should be greater than or equal to 1, got 0"):
        parse({"caution": 0})


def test_the_command_line_has_its_flag_and_its_name() -> None:
    def verb(options: dict[str, Any]) -> None:
        """A verb with options."""

    assert "caution" in inspect.signature(with_configuration(verb)).parameters
    assert "cautious" in registered_names("defence")


def test_a_name_that_means_two_things_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Confused(CautiousOptions):
        clip: Annotated[float, BY_SITE] = Field(default=9.0, gt=0, description="Something else.")

    class Other(Cautious):
        options: ClassVar[type[CautiousOptions]] = Confused

    monkeypatch.setitem(DEFENCES, "other", Other("other"))
    with pytest.raises(TypeError, match=r"option clip in \[privacy\]: expected a name of its own"):
        len(OPTIONS)


def test_it_trains_pays_promises_and_is_reported(tmp_path: Path) -> None:
    run = fk.train(SHARDS, out=tmp_path / "run", defence="cautious", epsilon=8.0, **SHORT)
    assert run.ledger is not None
    for client in run.clients:
        assert run.ledger.promises[client].facts.defence == "cautious"
        assert 0.9 * 8 < run.ledger.spent(client) <= 8
        steps = [charge.steps for charge in run.ledger.charges(client)]
        assert sum(steps) == 2 * 2 * 2  # rounds, steps, caution
    opened = fk.open_run(tmp_path / "run", data=SHARDS)
    assert opened.configuration.option("caution") == 2
    assert gather(tmp_path / "run").run.defence == "cautious"
