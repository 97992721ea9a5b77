"""The options of every defence that releases noisy counts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedkge.configuration import BY_SITE, PrivacySection


class CountOptions(PrivacySection):
    """The share of the budget that pays for counts, and their weight in the scores."""

    count_share: Annotated[float, BY_SITE] = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of epsilon that pays for noisy counts, whose popularity is added to scores; 0: none.",
    )
    count_weight: Annotated[float, BY_SITE] = Field(
        default=1.0,
        gt=0,
        description="Weight of the counts' log-probability beside the score; of a copy, times what it finds.",
    )
