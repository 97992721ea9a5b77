"""[federation]: what is shared, and how the server combines it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedkge.configuration.section import Mark, Section, by_nobody, by_server_alone


class FederationSection(Section):
    """What clients share, how the server combines it, and which uploads it accepts."""

    strategy: Annotated[str, by_nobody("a site shares entity rows (fede) and nothing else")] = Field(
        default="fede",
        description="What clients share: entities (fede), relations (fedr), nothing, or all triples (pooled).",
    )
    aggregation: Annotated[str, by_server_alone("how the server averages")] = Field(
        default="mean",
        description="How the server combines uploads; `weighted` counts triples and caps claims far above others.",
    )
    fraction: Annotated[float, by_server_alone("whom the server asks in a round")] = Field(
        default=1.0, gt=0, le=1, description="Share of the clients that take part in each round."
    )
    minimum_clients: Annotated[int | None, by_server_alone("when the server stops"), Mark.MAY_CHANGE] = Field(
        default=None,
        ge=1,
        description="Stop when fewer clients deliver in a round; without it 1, and a full disk stops the run at once.",
    )
    largest_row_norm: Annotated[float, by_server_alone("what the server accepts"), Mark.MAY_CHANGE] = Field(
        default=1000.0, gt=0, description="Refuse an upload with a longer row than this."
    )

    @property
    def least_clients(self) -> int:
        """How many clients must deliver a valid upload in a round."""
        return self.minimum_clients or 1
