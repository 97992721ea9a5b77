"""site.toml: the decisions of one organisation. Nobody else ever sees or changes this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fedkge.base.errors import ConfigurationError
from fedkge.base.plain_files import home_expanded
from fedkge.base.registry import near
from fedkge.configuration import Who, decided_by, kebab, read_table
from fedkge.defences import OPTIONS, chosen_defence, parse
from fedkge.deploy.alignment import LEAST_OWNERS
from fedkge.deploy.canonical import Case, Rules, UnicodeForm
from fedkge.graph.catalogue import DATASETS

SITE_DECIDES = decided_by(Who.SITE)
"""Options of `fedkge train` under [privacy] in site.toml. The site alone decides them."""

CHOOSE_NAMES = (
    "entities: expected a source for the names of entities, got none. Names leave as pseudonyms; if only one triple "
    'mentions a name, its pseudonym reveals that triple. Set entities = "names.txt" (a list of names that does not '
    'depend on your triples), entities = "threshold" (a name is released only if enough triples mention it; this is '
    'paid from epsilon and delta), or entities = "from-triples" (you accept the risk; `fedkge federation check` counts '
    "such triples)"
)
FILES = ("entities", "relations", "run", "kit", "key", "exponent")
_STRICT = ConfigDict(frozen=True, extra="forbid", alias_generator=kebab, populate_by_name=True, allow_inf_nan=False)


class Limits(BaseModel):
    """Limits on the server's terms. Under a defence they do not change the promise, which [privacy] sets."""

    model_config = _STRICT

    rounds: int = Field(100, ge=1, description="Most rounds that a federation may plan, and that are ever served.")
    dimension: int = Field(1024, ge=1, description="Largest dimension.")
    batch_size: int = Field(65536, ge=1, description="Largest batch.")
    local_epochs: int = Field(20, ge=1, description="Most passes over the triples per round.")
    local_steps: int = Field(10_000, ge=0, description="Most steps per round, where a federation counts steps.")
    negatives: int = Field(1024, ge=1, description="Most negatives per triple.")
    least_noise: float = Field(
        0.0, ge=0, description="Noisy steps: refuse a plan whose noise multiplier is below this in any round."
    )
    ring_names: int = Field(1_000_000, ge=1, description="Joint alignment: most names of another site that are raised.")
    tell_loss: bool = Field(False, description="Without a defence: send the loss of each round along.")
    answer_evaluations: bool = Field(False, description="Without a defence: rank held-out triples for the server.")

    @property
    def usual(self) -> dict[str, Any]:
        """Terms for a preview without a server: the defaults of `fedkge train`, cut to these limits."""
        limited = ((name, most) for name, most in self if name in OPTIONS and not isinstance(most, bool))
        return {kebab(name): most for name, most in limited if OPTIONS[name].info.default > most}


class Names(BaseModel):
    """How this site's names become canonical."""

    model_config = _STRICT

    unicode_form: UnicodeForm = Field("NFC", description="Unicode form; the same at all sites.")
    case: Case = Field("keep", description="keep, or fold: forget case; the same at all sites.")
    prefixes: dict[str, str] = Field(default_factory=dict, description="Prefix to what replaces it; empty strips it.")
    collisions: Literal["error", "merge"] = Field("error", description="When two names become one: error, or merge.")

    @property
    def rules(self) -> Rules:
        """These settings as rules that can be applied."""
        return Rules(self.unicode_form, self.case, dict(self.prefixes))


class SiteSettings(BaseModel):
    """The whole of site.toml. Paths are relative to the file.

    >>> own = {"graph": "graph.tsv", "entities": "names.txt", "privacy": {"epsilon": 4}}
    >>> SiteSettings(name="north", federation="study", **own).limits.rounds
    100
    """

    model_config = _STRICT

    name: str = Field(min_length=1, max_length=63, description="This site's name, as in its certificate.")
    federation: str = Field(min_length=1, max_length=63, description="The one federation that this file is for.")
    graph: str = Field(min_length=1, description="The site's own graph: file, folder or data set. It never leaves.")
    columns: str = Field("", description="Names of the head, relation and tail columns of a CSV or Parquet file.")
    skip_header: bool | None = Field(
        None, description="TSV: true skips the first line of each file, false reads it as a triple."
    )
    entities: Literal["from-triples", "threshold"] | Path = Field(
        description="Where entity names come from: a file with a list, one a line, fixed without looking at triples; "
        "or `threshold`; or `from-triples`."
    )
    relations: Path | None = Field(None, description="List of relation names, one a line; else those of the graph.")
    run: Path = Field(Path("run"), description="The site's run directory: its ledger, checkpoints and model.")
    kit: Path = Field(Path("kit"), description="The start-up kit that the coordinator sent.")
    key: Path = Field(Path("consortium.key"), description="The consortium key, readable by its owner alone.")
    alignment: Literal["keyed", "joint"] = Field("keyed", description="keyed (HMAC), or joint (Diffie-Hellman).")
    exponent: Path = Field(Path("joint.exponent"), description="The site's own secret of a joint alignment.")
    least_owners: int = Field(LEAST_OWNERS, ge=1, description="Rows that fewer sites own stay here; 1 uploads all.")
    seed: int | None = Field(None, ge=0, description="Research seed of start values and negatives; else drawn here.")
    number: int = Field(0, ge=0, description="Under a research seed: which client of the embedded run this site is.")
    record: str = Field("none", description="Rounds whose messages this site keeps for itself.")
    threads: int = Field(0, ge=0, description="Cores to use; 0 means all.")
    privacy: Mapping[str, Any] = Field(description="The site's defence and budget, as options of `fedkge train`.")
    limits: Limits = Field(Limits.model_validate({}), description="How far a server may go.")
    names: Names = Field(Names.model_validate({}), description="How names become canonical.")

    @property
    def names_are(self) -> Literal["from-triples", "listed", "threshold"]:
        """The source of the names, as a value of the option `names` of `fedkge train`."""
        return "listed" if isinstance(self.entities, Path) else self.entities

    @field_validator("privacy")
    @classmethod
    def _own(cls, privacy: Mapping[str, Any]) -> Mapping[str, Any]:
        options = {kebab(key): value for key, value in privacy.items()}
        known = sorted(map(kebab, SITE_DECIDES))
        for key in options:
            if key not in known:
                raise ValueError(f"unknown key {key!r}: {_hint(key, known)}")
        _check_protection(options)
        return options


def _check_protection(options: Mapping[str, Any]) -> None:
    """A site has real triples: it names a budget or says that it has no defence, and runs nothing without a proof."""
    try:
        configuration = parse(options)
        defence = chosen_defence(configuration)
        reason = defence.describe(configuration).not_private
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    budget = configuration.privacy.epsilon is not None or defence.given_noise(configuration) is not None
    if not budget and (defence.keeps_ledger or not options.get("defence")):
        raise ValueError('expected a budget (epsilon = 8), or, in plain words, defence = "none"')
    if defence.keeps_ledger and reason:
        raise ValueError(f"NOT private, so a site does not run it: {reason}; try it with `fedkge train`")


def read_site(path: Path) -> SiteSettings:
    """The settings in `path`, paths made absolute; an unknown key is an error that names the nearest."""
    values = read_table(path, "no such file; `fedkge federation init` writes one for each site")
    return parse_site(values, str(path), path.resolve().parent)


def parse_site(values: Mapping[str, Any], source: str = "site.toml", folder: Path = Path()) -> SiteSettings:
    """The settings in these keys and values.

    >>> parse_site({"name": "north", "federatoin": "study"})
    Traceback (most recent call last):
    ...
    fedkge.base.errors.ConfigurationError: site.toml: unknown key 'federatoin': did you mean federation?
    """
    for key, known in _unknown(values):
        raise ConfigurationError(f"{source}: unknown key {key!r}: {_hint(key.rpartition('.')[2], known)}")
    if "entities" not in values:
        raise ConfigurationError(f"{source}: {CHOOSE_NAMES}")
    try:
        site = SiteSettings.model_validate(_hyphenated(values))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {_said(item)}" for item in error.errors())
        raise ConfigurationError(f"{source}: {problems}") from error
    found: dict[str, Any] = {name: folder / value for name in FILES if isinstance(value := getattr(site, name), Path)}
    graph = folder / home_expanded(Path(site.graph))
    if graph.exists() or site.graph not in DATASETS:
        found["graph"] = str(graph)
    return site.model_copy(update=found)


def _said(item: Mapping[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if item["type"] in ("missing", "value_error") else f"{message}, got {item['input']!r:.60}"


def _hyphenated(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with hyphens in their keys; the keys under names.prefixes are not changed."""
    made = {kebab(key): value for key, value in values.items()}
    for table in ("limits", "names"):
        if isinstance(made.get(table), dict):
            made[table] = {kebab(key): value for key, value in made[table].items()}
    return made


def _unknown(values: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The unknown keys, each with the list of known keys of its table."""
    tables: dict[str, type[BaseModel]] = {"limits": Limits, "names": Names}
    known = [kebab(name) for name in SiteSettings.model_fields]
    yield from ((key, known) for key in values if kebab(key) not in known)
    for table, kind in tables.items():
        inner = values.get(table)
        own = [kebab(name) for name in kind.model_fields]
        if isinstance(inner, dict):
            yield from ((f"{table}.{key}", own) for key in inner if kebab(key) not in own)


def _hint(key: str, known: list[str]) -> str:
    close = near(kebab(key), known)
    if close:
        return f"did you mean {close[0]}?"
    if key.replace("-", "_") in OPTIONS:
        return "a site does not decide this; docs/reference/site-policy.md says who does"
    return f"known: {', '.join(known)}"
