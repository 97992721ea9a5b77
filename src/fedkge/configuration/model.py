"""[model]: which model, and its shape."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedkge.configuration.section import Flag, Section, by_server


class ModelSection(Section):
    """Which model is trained, and its shape. The dimension is the paper's."""

    name: Annotated[str, Flag("model"), by_server("all sites must train the same model")] = Field(
        default="transe",
        description="The model. If unsure, start with transe, which trains fastest.",
    )
    dimension: Annotated[int, by_server("rows of different length cannot be averaged; within the site's limit")] = (
        Field(default=128, ge=1, description="Embedding dimension. RotatE and ComplEx have this many complex numbers.")
    )
    margin: Annotated[
        float, by_server("changes the loss; gradients are clipped or come from a synthetic graph, whatever the loss is")
    ] = Field(
        default=10.0,
        gt=0,
        description="Margin of the loss of TransE and RotatE. It also sets the range of the start values.",
    )
    norm: Annotated[int, by_server("changes the loss")] = Field(
        default=1, ge=1, le=2, description="TransE: the norm of its distance, 1 or 2."
    )
