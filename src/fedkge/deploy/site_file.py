"""site.toml: what a site decides for itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedkge.configuration import kebab
from fedkge.deploy.federation_file import read_keys
from fedkge.errors import ConfigurationError


class SiteFile(BaseModel):
    """The whole of site.toml. Paths are relative to the file.

    >>> SiteFile(graph="graph.tsv").run
    PosixPath('run')
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True, allow_inf_nan=False
    )

    graph: str = Field(description="The site's own graph: a file, a folder, or a named data set.")
    run: Path = Field(Path("run"), description="The site's run directory: its ledger, its state, its model.")
    kit: Path = Field(Path("kit"), description="The start-up kit that the coordinator gave to this site.")
    record: str = Field("none", description="Rounds whose messages this site keeps for itself.")
    seed: int | None = Field(None, ge=0, description="Research seed; without one it is drawn and kept here.")
    number: int = Field(0, ge=0, description="Under a research seed: which client of the embedded run this site is.")
    threads: int = Field(0, ge=0, description="Cores to use; 0 means all.")
    privacy: Mapping[str, Any] = Field(default_factory=dict, description="epsilon, delta, defence and its options.")


def read_site(path: Path) -> SiteFile:
    """The settings in `path`, paths made absolute."""
    try:
        settings = SiteFile.model_validate(read_keys(path))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}, got {item['input']!r:.80}"
            for item in error.errors()
        )
        raise ConfigurationError(f"{path}: {problems}") from error
    folder = path.resolve().parent
    graph = folder / settings.graph
    return settings.model_copy(
        update={
            "graph": str(graph) if graph.exists() else settings.graph,
            "run": folder / settings.run,
            "kit": folder / settings.kit,
        }
    )
