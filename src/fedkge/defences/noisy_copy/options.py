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
        description="Share of epsilon that pays for a noisy copy of the graph, which is trained on instead; 0: none.",
    )
    sparse_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="A copy's count-share where a client has fewer than 1.8 triples per entity; 0: the same as others.",
    )


def copy_options(options: Configuration) -> CopyOptions:
    """The options of a noisy copy in this configuration."""
    return own_options(options, CopyOptions)
