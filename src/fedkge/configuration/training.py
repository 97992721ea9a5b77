"""[training]: rounds, steps, negatives, the optimiser and validation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import BY_SITE, Mark, Section, by_nobody, by_server

_AFTER_NOISE = by_server("multiplies what was noised already")
_OWN_RANKING = by_nobody("a site ranks its own triples as it likes")


class TrainingSection(Section):
    """How long and how a client trains, and how often it is validated. Batch, negatives, epochs and rate are the
    paper's.
    """

    rounds: Annotated[int, by_server("within the site's limit; the budget does not grow with it"), Mark.MAY_CHANGE] = (
        Field(default=30, ge=1, description="Communication rounds.")
    )
    local_epochs: Annotated[
        int, by_server("within the site's limit; noise is calibrated to the steps that follow, a copy is paid already")
    ] = Field(default=3, ge=1, description="Passes over a client's triples per round.")
    local_steps: Annotated[
        int, by_server("within the site's limit; noise is calibrated to them, a copy is paid already")
    ] = Field(default=0, ge=0, description="Steps per round instead of epochs; 0 means epochs.")
    optimiser: Annotated[str, by_server("works on what was noised already")] = Field(
        default="lazy-adam", description="How a step changes rows."
    )
    optimiser_state: Annotated[Literal["reset", "kept"], by_server("is made of what was noised already")] = Field(
        default="reset", description="The optimiser's state: reset in every round, as FedE does, or kept."
    )
    learning_rate: Annotated[float, _AFTER_NOISE] = Field(default=1e-3, gt=0, description="Learning rate.")
    learning_rate_decay: Annotated[float, _AFTER_NOISE] = Field(
        default=1.0, gt=0, le=1, description="The learning rate is multiplied by this after each round."
    )
    batch_size: Annotated[
        int,
        by_server("within the site's limit; noise is calibrated to the sampling that follows, a copy is paid already"),
    ] = Field(default=64, ge=1, description="Triples per step.")
    negatives: Annotated[int, by_server("within the site's limit; inside the clip, from public lists, or a copy's")] = (
        Field(default=256, ge=1, description="Negatives per triple.")
    )
    negative_group: Annotated[int, by_server("how negatives are shared; no part of a private step")] = Field(
        default=64, ge=1, description="Number of triples that share their negatives; 1 draws negatives for each triple."
    )
    corrupt: Annotated[Literal["tail", "head", "both"], by_server("which side negatives replace")] = Field(
        default="both", description="Side that negatives replace; both: in turns."
    )
    filter_negatives: Annotated[bool, by_nobody("tells which triples are private")] = Field(
        default=False, description="Draw a negative again if it is a known triple (needs negative-group 1)."
    )
    temperature: Annotated[float, by_server("how negatives are weighed")] = Field(
        default=1.0, ge=0, description="Self-adversarial temperature; 0 gives all negatives the same weight."
    )
    regularisation: Annotated[
        float,
        by_nobody("is the defence's: without a copy it would be computed from private triples outside the clip"),
    ] = Field(default=0.0, ge=0, description="Weight of the squared norms of each positive triple's rows.")
    init: Annotated[str, by_nobody("start vectors may carry private triples past the noise"), Mark.IS_PATH] = Field(
        default="", description="Start from the vectors in this run directory or .safetensors/.parquet/.txt file."
    )
    evaluate_every: Annotated[int, BY_SITE, Mark.MAY_CHANGE] = Field(
        default=5, ge=0, description="Validate after every so many rounds; 0 ranks at the end only."
    )
    validation_triples: Annotated[int, _OWN_RANKING, Mark.MAY_CHANGE] = Field(
        default=0, ge=0, description="Validate on a fixed sample of this size; 0 takes all."
    )
    patience: Annotated[int, by_nobody("stops by private validation triples"), Mark.MAY_CHANGE] = Field(
        default=0, ge=0, description="Stop after so many validations without a better MRR; 0 never stops."
    )
    threads: Annotated[int, by_nobody("the site says how many cores to use"), Mark.MAY_CHANGE, Mark.NO_EFFECT] = Field(
        default=0, ge=0, description="Cores to use; 0 means all. The result does not depend on it."
    )

    def steps_per_round(self, triples: int) -> int:
        """How many steps a client with so many triples takes in a round.

        >>> TrainingSection(local_epochs=3, batch_size=64).steps_per_round(triples=100)
        6
        """
        return self.local_steps or self.local_epochs * -(-triples // self.batch_size)
