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
        description="Share of epsilon that pays for noisy counts. Their popularity is added to the scores. 0 means no "
        "counts.",
    )
    count_weight: Annotated[float, BY_SITE] = Field(
        default=1.0,
        gt=0,
        description="Weight of the log-probability of the counts, which is added to the score. A synthetic graph "
        "scales it by what it finds.",
    )
