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
