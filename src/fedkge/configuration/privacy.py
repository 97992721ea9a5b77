"""[privacy]: the defence, its budget and its noise."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import BY_SITE, Mark, Section, by_nobody


class PrivacySection(Section):
    """Which defence protects each client, its budget (epsilon, delta), and how the budget is spent."""

    defence: Annotated[str, BY_SITE] = Field(
        default="none",
        description="The defence. --epsilon alone sets recommended, --noise sets noisy-steps.",
    )
    epsilon: Annotated[float | None, BY_SITE] = Field(
        default=None,
        gt=0,
        description="Privacy budget of each client. It calibrates the noise, and no client spends more.",
    )
    delta: Annotated[float | None, BY_SITE] = Field(
        default=None,
        gt=0,
        lt=1,
        description="Delta of (epsilon, delta). Without it, the smaller of 1e-5 and 1/(10 n), where n is the client's "
        "public size.",
    )
    allow_large_delta: Annotated[bool, BY_SITE] = Field(
        default=False, description="Accept a delta of 1/n or more, which allows a whole triple to be published."
    )
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
    count_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for noisy counts. Their popularity is added to the scores. 0 means no "
        "counts.",
    )
    copy_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for a synthetic graph, which replaces the real graph in training. 0 "
        "means none.",
    )
    sparse_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Synthetic graph: the count-share of clients with fewer than 1.8 triples per entity. 0 means "
        "count-share.",
    )
    count_types: Annotated[int, BY_SITE] = Field(
        default=8, ge=1, description="Number of entity types. Noisy counts are kept per type."
    )
    count_weight: Annotated[float, BY_SITE] = Field(
        default=1.0,
        gt=0,
        description="Weight of the log-probability of the counts, which is added to the score. A synthetic graph "
        "scales it by what it finds.",
    )
    public_triples: Annotated[int, BY_SITE] = Field(
        default=0,
        ge=0,
        description="Public number of triples per client. 0 releases each client's number once, with noise, and "
        "charges the budget for it.",
    )
    names: Annotated[
        Literal["from-triples", "listed", "threshold"],
        by_nobody("the site says where its names come from (entities in site.toml)"),
    ] = Field(
        default="from-triples",
        description="Origin of entity names: the triples, a list made without the triples, or names in enough triples "
        "(by a noisy threshold).",
    )
    names_share: Annotated[float, BY_SITE] = Field(
        default=0.25, gt=0, lt=1, description="Names `threshold`: share of epsilon that pays for the release of names."
    )
    public_init: Annotated[bool, by_nobody("start vectors may reveal private triples without noise")] = Field(
        default=False, description="State that the vectors of --init are public. Otherwise a defence refuses them."
    )
    accountant: Annotated[Literal["pld", "rdp"], BY_SITE] = Field(
        default="pld", description="Privacy accountant: pld (tight) or rdp."
    )
    noise_seed: Annotated[int | None, BY_SITE] = Field(
        default=None,
        ge=0,
        description="Research seed of the noise. The noise can be repeated, so the run is NOT private.",
    )
