"""[data]: which graph, and how its triples are divided among clients."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import Flag, Mark, Section, by_nobody

_OWN_GRAPH = by_nobody("the site names its own graph")
_NO_SPLIT = by_nobody("every site has its own graph")


class DataSection(Section):
    """Which graph is read, and how its triples are divided among the clients of a simulated federation."""

    source: Annotated[str, Flag("data"), _OWN_GRAPH, Mark.IS_PATH] = Field(
        default="demo", description="Named data set, file or folder."
    )
    columns: Annotated[str, _OWN_GRAPH] = Field(
        default="", description="Names of the head, relation and tail columns of a CSV or Parquet file."
    )
    skip_header: Annotated[bool | None, _OWN_GRAPH] = Field(
        default=None, description="TSV: skip the first line of each file; --no-skip-header reads it as a triple."
    )
    clients: Annotated[int, by_nobody("the sites are those with a start-up kit")] = Field(
        default=1, ge=1, description="Number of clients; one graph is a federation of one."
    )
    split: Annotated[Literal["entity", "relation", "triple"], _NO_SPLIT] = Field(
        default="entity", description="How triples are divided among clients."
    )
    overlap: Annotated[float | None, _NO_SPLIT] = Field(
        default=None, ge=0, le=1, description="Share of the other clients' entities that each client also gets."
    )
    keep_leaked: Annotated[bool, by_nobody("a site ranks its own triples as it likes")] = Field(
        default=False,
        description="Score held-out triples that are in train too; otherwise they are counted and left out.",
    )
