"""[privacy]: the defence, its budget and its noise."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import BY_SITE, Mark, Section, by_nobody


class PrivacySection(Section):
    """Which defence protects each client, its budget (epsilon, delta), and how the budget is spent."""

    defence: Annotated[str, BY_SITE] = Field(
        default="none",
        description="The defence of each client; --epsilon alone means recommended, --noise means noisy-steps.",
    )
    epsilon: Annotated[float | None, BY_SITE] = Field(
        default=None,
        gt=0,
        description="Privacy budget of each client: calibrates the noise, and no client goes beyond it.",
    )
    delta: Annotated[float | None, BY_SITE] = Field(
        default=None,
        gt=0,
        lt=1,
        description="Delta of (epsilon, delta); without it the smaller of 1e-5 and 1/(10 n), n the public size.",
    )
    allow_large_delta: Annotated[bool, BY_SITE] = Field(
        default=False, description="Accept a delta of 1/n or more, which may publish a triple."
    )
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
        default="dense", description="How a step chooses the rows that get gradient and noise."
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
        default="constant", description="Noise per round; `validation` follows the MRR on public triples."
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
    count_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for noisy counts, whose popularity is added to scores; 0: none.",
    )
    copy_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for a noisy copy of the graph, which is trained on instead; 0: none.",
    )
    sparse_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="A copy's count-share where a client has fewer than 1.8 triples per entity; 0: the same as others.",
    )
    count_types: Annotated[int, BY_SITE] = Field(
        default=8, ge=1, description="Types of entities by which answers are counted apart."
    )
    count_weight: Annotated[float, BY_SITE] = Field(
        default=1.0,
        gt=0,
        description="Weight of the counts' log-probability beside the score; of a copy, times what it finds.",
    )
    public_triples: Annotated[int, BY_SITE] = Field(
        default=0,
        ge=0,
        description="Public number of triples per client; 0 releases each client's number once, with noise, and charges"
        " it.",
    )
    names: Annotated[
        Literal["from-triples", "listed", "threshold"],
        by_nobody("the site says where its names come from (entities in site.toml)"),
    ] = Field(
        default="from-triples",
        description="Entity names: those of the triples, a list that no triple decides, or those that enough mention.",
    )
    names_share: Annotated[float, BY_SITE] = Field(
        default=0.25, gt=0, lt=1, description="Names `threshold`: share of epsilon that pays for the release of names."
    )
    public_init: Annotated[bool, by_nobody("start vectors may carry private triples past the noise")] = Field(
        default=False, description="The vectors of --init are public; a defence refuses them otherwise."
    )
    accountant: Annotated[Literal["pld", "rdp"], BY_SITE] = Field(
        default="pld", description="Accountant of the budget: pld (tight) or rdp."
    )
    noise_seed: Annotated[int | None, BY_SITE] = Field(
        default=None, ge=0, description="Research seed of the noise: repeatable, and therefore NOT private."
    )
