"""[experiment]: seed, transcript, canaries and who attacks whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import Mark, Section, by_nobody

_OWN_DATA = by_nobody("the site's data is the site's")
_ONE_PROCESS = by_nobody("an experiment in one process")


class ExperimentSection(Section):
    """What an experimenter sets: the seed, which rounds are recorded, which triples are attacked and by whom."""

    seed: Annotated[int | None, by_nobody("the site draws its own, or names it in site.toml")] = Field(
        default=None, ge=0, description="Research seed; without one it is drawn and saved with the run."
    )
    record: Annotated[str, by_nobody("each side keeps what it sees, as its own file says"), Mark.MAY_CHANGE] = Field(
        default="none", description="Rounds kept in the transcript: none, all, every:N, or a list like 1,5,10."
    )
    canaries: Annotated[int, _OWN_DATA] = Field(
        default=0,
        ge=0,
        description="Triples to attack (random ones: design C; real ones: design R); half are trained on.",
    )
    canary_coins: Annotated[Literal["half", "independent", "seeded"], _OWN_DATA] = Field(
        default="half",
        description="Which canaries are inserted: a fixed half; or, for an audit, by one system coin each, or by one "
        "seeded coin each.",
    )
    canary_source: Annotated[Literal["shared", "victim", "rare", "likely", "real"], _OWN_DATA] = Field(
        default="shared",
        description="Canaries: random triples of names that victim and adversary share, of the victim's names, of its "
        "rare ones; likely triples of its names; or its real triples, of which half are left out.",
    )
    victim: Annotated[str, _ONE_PROCESS] = Field(
        default="client-0", description="The client whose triples attacks try to infer."
    )
    adversary: Annotated[str, _ONE_PROCESS] = Field(
        default="client-1", description="The client that attacks, in attacks by a client or a collusion."
    )
    inline_attack: Annotated[Literal["none", "cia"], _ONE_PROCESS] = Field(
        default="none", description="Let the adversary really attack the canaries within the federation: none or cia."
    )
