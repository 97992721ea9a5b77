"""[model]: which model, and its shape."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedkge.configuration.section import Flag, Section, by_server


class ModelSection(Section):
    """Which model is trained, and its shape. The dimension is the paper's."""

    name: Annotated[str, Flag("model"), by_server("all sites must train the same one")] = Field(
        default="transe", description="The model that all clients train."
    )
    dimension: Annotated[int, by_server("rows of different length cannot be averaged; within the site's limit")] = (
        Field(default=128, ge=1, description="Embedding dimension (complex numbers for RotatE and ComplEx).")
    )
    margin: Annotated[float, by_server("shape of the loss; gradients are clipped, or a copy's, whatever they are")] = (
        Field(default=10.0, gt=0, description="Margin of the distance models; also sets the range of start values.")
    )
    norm: Annotated[int, by_server("shape of the loss")] = Field(
        default=1, ge=1, le=2, description="Distance of TransE: 1 or 2."
    )
