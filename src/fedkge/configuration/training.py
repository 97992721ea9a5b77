"""[training]: rounds, steps, negatives, the optimiser and validation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedkge.configuration.section import BY_SITE, Mark, Section, by_nobody, by_server

_AFTER_NOISE = by_server("scales values that already have noise")
_OWN_RANKING = by_nobody("a site ranks its own triples as it likes")


class TrainingSection(Section):
    """How long and how a client trains, and how often it is validated. Batch, negatives, epochs and rate are the
    paper's.
    """

    rounds: Annotated[int, by_server("within the site's limit; the budget does not grow with it"), Mark.MAY_CHANGE] = (
        Field(default=30, ge=1, description="Number of communication rounds.")
    )
    local_epochs: Annotated[
        int,
        by_server(
            "within the site's limit; noise is calibrated to the steps, and a synthetic graph is paid for already"
        ),
    ] = Field(default=3, ge=1, description="Passes over a client's triples in each round.")
    local_steps: Annotated[
        int, by_server("within the site's limit; noise is calibrated to it, and a synthetic graph is paid for already")
    ] = Field(default=0, ge=0, description="Steps in each round, instead of local-epochs. 0 means local-epochs.")
    optimiser: Annotated[str, by_server("uses only values that already have noise")] = Field(
        default="lazy-adam", description="The optimiser."
    )
    optimiser_state: Annotated[Literal["reset", "kept"], by_server("uses only values that already have noise")] = Field(
        default="reset", description="State of the optimiser: reset in every round (as in FedE), or kept."
    )
    learning_rate: Annotated[float, _AFTER_NOISE] = Field(default=1e-3, gt=0, description="Learning rate.")
    learning_rate_decay: Annotated[float, _AFTER_NOISE] = Field(
        default=1.0, gt=0, le=1, description="Factor on the learning rate after each round."
    )
    batch_size: Annotated[
        int,
        by_server(
            "within the site's limit; noise is calibrated to the sampling, and a synthetic graph is paid for already"
        ),
    ] = Field(default=64, ge=1, description="Number of triples per step.")
    negatives: Annotated[
        int,
        by_server("within the site's limit; negatives are inside the clip, or from public lists or a synthetic graph"),
    ] = Field(default=256, ge=1, description="Number of negatives per triple.")
    negative_group: Annotated[int, by_server("says how triples share negatives; private steps do not use it")] = Field(
        default=64, ge=1, description="Number of triples that share their negatives. 1 draws negatives for each triple."
    )
    corrupt: Annotated[Literal["tail", "head", "both"], by_server("says which side negatives replace")] = Field(
        default="both", description="The side that negatives replace. `both` alternates."
    )
    filter_negatives: Annotated[bool, by_nobody("would reveal which triples are private")] = Field(
        default=False, description="Replace a negative that is a known triple (needs negative-group 1)."
    )
    temperature: Annotated[float, by_server("says how negatives are weighted")] = Field(
        default=1.0,
        ge=0,
        description="Temperature of self-adversarial negatives. 0 gives all negatives the same weight.",
    )
    regularisation: Annotated[
        float,
        by_nobody("the defence sets it: without a synthetic graph it would use private triples outside the clip"),
    ] = Field(default=0.0, ge=0, description="Weight of the penalty on the squared norms of a triple's rows.")
    init: Annotated[str, by_nobody("start vectors may reveal private triples without noise"), Mark.IS_PATH] = Field(
        default="", description="Start from these vectors: a run directory, or a .safetensors, .parquet or .txt file."
    )
    evaluate_every: Annotated[int, BY_SITE, Mark.MAY_CHANGE] = Field(
        default=5, ge=0, description="Validate after every N-th round. 0 evaluates only at the end."
    )
    validation_triples: Annotated[int, _OWN_RANKING, Mark.MAY_CHANGE] = Field(
        default=0, ge=0, description="Validate on a fixed sample of this size. 0 takes all validation triples."
    )
    patience: Annotated[int, by_nobody("would stop the run by private validation triples"), Mark.MAY_CHANGE] = Field(
        default=0, ge=0, description="Stop after this many validations without a better MRR. 0 never stops early."
    )
    threads: Annotated[int, by_nobody("the site says how many cores to use"), Mark.MAY_CHANGE, Mark.NO_EFFECT] = Field(
        default=0, ge=0, description="Number of cores to use. 0 means all. The result does not depend on it."
    )

    def steps_per_round(self, triples: int) -> int:
        """How many steps a client with so many triples takes in a round.

        >>> TrainingSection(local_epochs=3, batch_size=64).steps_per_round(triples=100)
        6
        """
        return self.local_steps or self.local_epochs * -(-triples // self.batch_size)
