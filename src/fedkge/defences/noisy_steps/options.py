"""The options of noisy steps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration import BY_SITE, Configuration, Mark
from fedkge.defences.counts.options import CountOptions
from fedkge.defences.own_options import own_options


class StepOptions(CountOptions):
    """How gradients are clipped, which rows get noise, and how much noise each round has."""

    noise: Annotated[float | None, BY_SITE] = Field(
        default=None,
        gt=0,
        description="Noise multiplier sigma of noisy steps; without it what --epsilon needs for all rounds.",
    )
    clip: Annotated[float, BY_SITE] = Field(
        default=1.2, gt=0, description="C1: longest gradient of one triple over all of its rows."
    )
    row_clip: Annotated[float | None, BY_SITE] = Field(
        default=None, gt=0, description="C2: longest entity row in the gradient of one triple."
    )
    normalise: Annotated[bool, BY_SITE] = Field(
        default=False, description="Stretch short gradients to C1 too: for models with tiny gradients."
    )
    private_negatives: Annotated[Literal["inside", "public"], BY_SITE] = Field(
        default="inside",
        description="Corruptions inside the clipped gradient of each triple, or of public (head, relation)s.",
    )
    public_graph: Annotated[str, BY_SITE, Mark.IS_PATH] = Field(
        default="", description="Graph whose (head, relation)s are public negatives; else uniform ones."
    )
    selection: Annotated[str, BY_SITE] = Field(
        default="dense", description="Rows that get gradient and noise: dense, adafest, fest, ptr, ..."
    )
    selection_share: Annotated[float, BY_SITE] = Field(
        default=0.2, gt=0, lt=1, description="Share of the privacy cost that pays for selection."
    )
    selection_threshold: Annotated[float, BY_SITE] = Field(
        default=2.0, description="Adafest: release the rows whose noisy count reaches this."
    )
    selection_rows: Annotated[float, BY_SITE] = Field(
        default=0.5, gt=0, le=1, description="Fest: share of the rows that is chosen, once."
    )
    test_failure: Annotated[float, BY_SITE] = Field(
        default=1e-8, gt=0, lt=1, description="Ptr: chance per step that the test wrongly passes."
    )
    noise_step: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        description="SGD: learn more slowly where one step's noise would move a number by more than this.",
    )
    noise_schedule: Annotated[str, BY_SITE] = Field(
        default="constant", description="Noise per round: constant, a preset decay, or decay by public validation MRR."
    )
    noise_decay: Annotated[float, BY_SITE] = Field(
        default=0.95, gt=0, le=1, description="Factor by which the noise falls (eta)."
    )
    least_gain: Annotated[float, BY_SITE] = Field(
        default=1e-3, ge=0, description="Schedule `validation`: MRR gain below which it falls (Delta)."
    )
    public_validation: Annotated[str, BY_SITE, Mark.IS_PATH] = Field(
        default="", description="Schedule `validation`: graph whose public triples are ranked."
    )
    count_types: Annotated[int, BY_SITE] = Field(
        default=8, ge=1, description="Types of entities by which answers are counted apart."
    )


def steps_of(options: Configuration) -> StepOptions:
    """The options of noisy steps in this configuration."""
    return own_options(options, StepOptions)
