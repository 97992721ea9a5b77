"""[federation]: what is shared, and how the server combines it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedkge.configuration.section import Mark, Section, by_nobody, by_server_alone


class FederationSection(Section):
    """What clients share, how the server combines it, and which uploads it accepts."""

    strategy: Annotated[str, by_nobody("a site shares entity rows (fede) and nothing else")] = Field(
        default="fede",
        description="What clients share: fede (entities), fedr (relations), isolated (nothing) or pooled (all "
        "triples, in one place).",
    )
    aggregation: Annotated[str, by_server_alone("says how the server averages")] = Field(
        default="mean",
        description="How the server averages a row: the mean of its owners, or a mean weighted by triples. A claimed "
        "number of triples far above the others is capped.",
    )
    fraction: Annotated[float, by_server_alone("which sites the server asks in a round")] = Field(
        default=1.0, gt=0, le=1, description="Share of the clients that take part in each round."
    )
    minimum_clients: Annotated[int | None, by_server_alone("says when the server stops"), Mark.MAY_CHANGE] = Field(
        default=None,
        ge=1,
        description="Stop if fewer clients deliver in a round. Without it, one client is enough, but a full disk "
        "stops the run.",
    )
    largest_row_norm: Annotated[float, by_server_alone("says what the server accepts"), Mark.MAY_CHANGE] = Field(
        default=1000.0, gt=0, description="The server refuses an upload with a row of a larger norm."
    )

    @property
    def least_clients(self) -> int:
        """How many clients must deliver a valid upload in a round."""
        return self.minimum_clients or 1
