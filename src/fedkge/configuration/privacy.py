"""[privacy]: the options that every defence takes. A defence with more has a subclass of its own.

The option `defence` says which class a section has. `fedkge.defences` knows the defences.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import BY_SITE, Section, by_nobody

TAG = "defence"
"""The option that decides which options a [privacy] section has."""


class PrivacySection(Section):
    """Which defence protects each client, its budget (epsilon, delta), and how the budget is spent."""

    defence: Annotated[str, BY_SITE] = Field(
        default="none",
        description="Defence by name; without it the one that --epsilon or --noise chooses, else none.",
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
