"""federation.toml: the decisions of the coordinating machine. `fedkge federation init` writes this file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration, kebab, read_table
from fedkge.defences import parse
from fedkge.deploy.liveness import SHORTEST_SILENCE, Liveness
from fedkge.deploy.wire import LARGEST_MESSAGE, Numbers

SITE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
"""A site name must be valid in a certificate, a file name and a log line."""

KIT_FOLDERS = ("server", "coordinator", "authority")
"""Folders next to the sites' folders. A site's folder is sent to the site, so no site may have one of these names."""


class FederationFile(BaseModel):
    """The whole of federation.toml. Paths are relative to the file.

    >>> FederationFile(server="localhost", sites=["a", "b"]).port
    8002
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True, allow_inf_nan=False
    )

    name: str = Field("fedkge", pattern=r"^[A-Za-z0-9_-]{1,40}$", description="The federation's name; all sites agree.")
    server: str = Field("localhost", description="The name under which the sites reach this machine.")
    port: int = Field(8002, ge=1, le=65535, description="The only port that must be open, on this machine alone.")
    sites: tuple[str, ...] = Field(description="The sites; each gets a start-up kit, and nobody else gets in.")
    kits: Path = Field(Path("kits"), description="Where `federation init` puts the start-up kits.")
    run: Path = Field(Path("run"), description="The server's run directory.")
    round_seconds: float = Field(3600.0, gt=0, description="A site that has not answered by then is left out.")
    silence_seconds: float = Field(
        Liveness().silence_seconds,
        ge=SHORTEST_SILENCE,
        description="A site that has not been heard of for so long is lost, before its time-out.",
    )
    minimum_owners: int = Field(
        2, ge=1, validate_default=True, description="Rows that fewer sites own stay with them; at most all sites."
    )
    wire: Numbers = Field("float32", description="Rows travel as float32 or, half as large, as float16.")
    largest_message: int = Field(LARGEST_MESSAGE, ge=1024, description="Bytes; a larger message is refused.")
    training: Mapping[str, Any] = Field(default_factory=dict, description="Options of `fedkge train`.")

    @field_validator("sites")
    @classmethod
    def _different(cls, sites: Sequence[str], info: ValidationInfo) -> Sequence[str]:
        if len(sites) < 1 or len({site.lower() for site in sites}) != len(sites):
            raise ValueError("expected at least one site, each named once (case does not count)")
        taken = {*KIT_FOLDERS, str(info.data.get("server", "")).lower()}
        for site in sites:
            if not SITE_NAME.fullmatch(site):
                raise ValueError(f"expected names of letters, digits and hyphens, got {site!r}")
            if site.lower() in taken:
                raise ValueError(f"expected another name than {site!r}, which is the name of the server or of a folder")
        return tuple(sites)

    @field_validator("minimum_owners")
    @classmethod
    def _possible(cls, owners: int, info: ValidationInfo) -> int:
        sites = info.data.get("sites")
        if sites is not None and owners > len(sites):
            raise ValueError(f"expected at most the number of sites, {len(sites)}: else no row would be shared")
        return owners

    @property
    def configuration(self) -> Configuration:
        """The completed training options; the sites replace the options that they decide."""
        return parse(self.training)


def read_federation(path: Path) -> FederationFile:
    """The settings in `path`, with absolute paths; an unknown key or an impossible value is an error."""
    settings = _validated(path, read_keys(path))
    settings.configuration  # noqa: B018 (an unknown training option is an error here, not in the middle of a run)
    folder = path.resolve().parent
    return settings.model_copy(update={"kits": folder / settings.kits, "run": folder / settings.run})


def read_keys(path: Path) -> dict[str, Any]:
    """The keys and values of a TOML file, with hyphens in the keys."""
    values = read_table(path, "no such file; `fedkge federation init` writes one")
    return {kebab(key): value for key, value in values.items()}


def _validated(path: Path, values: Mapping[str, Any]) -> FederationFile:
    try:
        return FederationFile.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}, got {item['input']!r:.80}"
            for item in error.errors()
        )
        raise ConfigurationError(f"{path}: {problems}") from error
