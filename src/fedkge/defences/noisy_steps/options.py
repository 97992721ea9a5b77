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
        description="Noisy steps: noise multiplier sigma. Without it, the noise that --epsilon needs for all rounds.",
    )
    clip: Annotated[float, BY_SITE] = Field(
        default=1.2,
        gt=0,
        description="Clip norm C1: the gradient of one triple, over all its rows, is clipped to this norm.",
    )
    row_clip: Annotated[float | None, BY_SITE] = Field(
        default=None,
        gt=0,
        description="Clip norm C2: each entity row in the gradient of one triple is clipped to this norm.",
    )
    normalise: Annotated[bool, BY_SITE] = Field(
        default=False, description="Also scale short gradients up to C1. This helps models with very small gradients."
    )
    private_negatives: Annotated[Literal["inside", "public"], BY_SITE] = Field(
        default="inside",
        description="Where negatives come from: inside the clipped gradient of each triple, or from public pairs of "
        "head and relation.",
    )
    public_graph: Annotated[str, BY_SITE, Mark.IS_PATH] = Field(
        default="", description="Graph with the public pairs of head and relation. Without it, uniform pairs."
    )
    selection: Annotated[str, BY_SITE] = Field(
        default="dense", description="Which rows get gradient and noise; dense means all rows."
    )
    selection_share: Annotated[float, BY_SITE] = Field(
        default=0.2, gt=0, lt=1, description="Share of the privacy cost that pays for the selection of rows."
    )
    selection_threshold: Annotated[float, BY_SITE] = Field(
        default=2.0, description="Adafest: a row is released if its noisy count reaches this."
    )
    selection_rows: Annotated[float, BY_SITE] = Field(
        default=0.5, gt=0, le=1, description="Fest: share of the rows that is selected, once."
    )
    test_failure: Annotated[float, BY_SITE] = Field(
        default=1e-8, gt=0, lt=1, description="Ptr: probability that the test of one step passes wrongly."
    )
    noise_step: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        description="SGD: lower the learning rate if the noise of one step would move a number by more than this.",
    )
    noise_schedule: Annotated[str, BY_SITE] = Field(
        default="constant",
        description="Noise per round: constant, a fixed decay, or a decay that follows the MRR on public validation "
        "triples.",
    )
    noise_decay: Annotated[float, BY_SITE] = Field(
        default=0.95, gt=0, le=1, description="Factor on the noise at each decay (eta)."
    )
    least_gain: Annotated[float, BY_SITE] = Field(
        default=1e-3,
        ge=0,
        description="Schedule `validation`: the noise decays if the MRR gains less than this (Delta).",
    )
    public_validation: Annotated[str, BY_SITE, Mark.IS_PATH] = Field(
        default="", description="Schedule `validation`: graph with the public validation triples."
    )
    count_types: Annotated[int, BY_SITE] = Field(
        default=8, ge=1, description="Number of entity types. Noisy counts are kept per type."
    )


def steps_of(options: Configuration) -> StepOptions:
    """The options of noisy steps in this configuration."""
    return own_options(options, StepOptions)
