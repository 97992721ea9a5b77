"""The options of a noisy copy."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedkge.configuration import BY_SITE, Configuration
from fedkge.defences.counts.options import CountOptions
from fedkge.defences.own_options import own_options


class CopyOptions(CountOptions):
    """How the budget is shared between counts and randomised responses."""

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


def copy_options(options: Configuration) -> CopyOptions:
    """The options of a noisy copy in this configuration."""
    return own_options(options, CopyOptions)
