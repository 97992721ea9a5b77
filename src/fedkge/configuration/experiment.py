"""[experiment]: seed, transcript, canaries and who attacks whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import Mark, Section, by_nobody

_OWN_DATA = by_nobody("each site decides about its own data")
_ONE_PROCESS = by_nobody("only for experiments in one process")


class ExperimentSection(Section):
    """What an experimenter sets: the seed, which rounds are recorded, which triples are attacked and by whom."""

    seed: Annotated[int | None, by_nobody("the site draws its own, or names it in site.toml")] = Field(
        default=None, ge=0, description="Research seed. Without it, a seed is drawn and saved with the run."
    )
    record: Annotated[str, by_nobody("each party records what it sees, as its own file says"), Mark.MAY_CHANGE] = Field(
        default="none",
        description="Rounds to record in the transcript, which attacks need: none, all, every:N, or a list such as "
        "1,5,10.",
    )
    canaries: Annotated[int, _OWN_DATA] = Field(
        default=0,
        ge=0,
        description="Number of canaries: triples that attacks and audits look for. The victim trains on half of them.",
    )
    canary_coins: Annotated[Literal["half", "independent", "seeded"], _OWN_DATA] = Field(
        default="half",
        description="How canaries are chosen for training: a fixed half, one independent system coin each (for an "
        "audit), or one seeded coin each.",
    )
    canary_source: Annotated[Literal["shared", "victim", "rare", "likely", "real"], _OWN_DATA] = Field(
        default="shared",
        description="What canaries are: random triples of names that victim and adversary share, of the victim's "
        "names, or of its rare names; likely triples; or real triples of the victim.",
    )
    victim: Annotated[str, _ONE_PROCESS] = Field(
        default="client-0", description="The client whose triples the attacks try to infer."
    )
    adversary: Annotated[str, _ONE_PROCESS] = Field(
        default="client-1", description="The client that attacks, alone or together with the server."
    )
    inline_attack: Annotated[Literal["none", "cia"], _ONE_PROCESS] = Field(
        default="none",
        description="Attack that the adversary carries out during training, on the canaries: none or cia.",
    )
