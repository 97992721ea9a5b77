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
        default="demo", description="A file, a folder, or a data set by name (see fedkge data list)."
    )
    columns: Annotated[str, _OWN_GRAPH] = Field(
        default="", description="CSV and Parquet: names of the columns of head, relation and tail, separated by commas."
    )
    skip_header: Annotated[bool | None, _OWN_GRAPH] = Field(
        default=None, description="TSV: skip the first line of each file. --no-skip-header reads it as a triple."
    )
    clients: Annotated[int, by_nobody("the sites are those with a start-up kit")] = Field(
        default=1, ge=1, description="Number of clients. 1 trains on the whole graph."
    )
    split: Annotated[Literal["entity", "relation", "triple"], _NO_SPLIT] = Field(
        default="entity", description="What is divided among the clients: entities, relations or triples."
    )
    overlap: Annotated[float | None, _NO_SPLIT] = Field(
        default=None, ge=0, le=1, description="Share of the other clients' entities that each client also gets."
    )
    keep_leaked: Annotated[bool, by_nobody("a site ranks its own triples as it likes")] = Field(
        default=False,
        description="Rank held-out triples that are in train too. Without it, they are counted but not ranked.",
    )
