"""A run: a trained federation, on disk and in memory.

`model.safetensors` holds, for each client c: `own/c` (its rows in the entity table), `relations/c`,
`relation_ids/c` (their places in relations.txt), and one `entities` table over entities.txt. If clients share
no entities (isolated, FedR), each has its own table, `entities/c`. A defence that counts adds `counts/c/...`, the
noisy counts that belong to the client's model (`fedkge.defences.release`).
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import tomlkit
from numpy.typing import NDArray

from fedkge import __version__
from fedkge.accounting.ledger import Ledger
from fedkge.accounting.ledger_lines import fresh_token
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.base.plain_files import read_text
from fedkge.configuration import Configuration, flat_options, read_table
from fedkge.defences import chosen_defence
from fedkge.defences.release import Release
from fedkge.evaluation import Evaluations, evaluate
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.catalogue import DATASETS
from fedkge.graph.shards import client_names
from fedkge.graph.summary import leaked
from fedkge.models import Embedding, ModelShape, Tables, make_scorer
from fedkge.models.embedding import Prior
from fedkge.models.scorer import Scorer
from fedkge.store.data_key import FILE_NAME as DATA_KEY
from fedkge.store.data_key import DataKey, create_key, key_name, read_key
from fedkge.store.durable_files import Tensors, load_tensors, make_folder, save_tensors, write_atomically
from fedkge.store.result_files import read_metrics_file

__all__ = [
    "AT_THE_SITES",
    "CONFIG",
    "LAST_ROUNDS",
    "MODEL",
    "Run",
    "RunDirectory",
    "check_has_data",
    "check_same_data",
    "client_names",
    "provenance_of",
    "scorer_of",
    "shape_of",
]

CONFIG, METRICS, MODEL, LEDGER = "config.toml", "metrics.jsonl", "model.safetensors", "ledger.jsonl"
ENTITIES, RELATIONS, CHECKPOINTS = "entities.txt", "relations.txt", "checkpoints"
SITES = "sites.json"
"""In a run gathered from a deployed federation: the site of each client."""
LAST_ROUNDS = "last_rounds"
"""A fact of a defended model: the last round of each client in it. The ledger must contain these rounds."""
NUMBERED = "numbered"
"""In a gathered run: how its sites numbered their names."""
AT_THE_SITES = "at the sites"
"""Replaces the digest of the data in the run of a federation's server."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished (or loaded) run.

    `metrics` are the lines of metrics.jsonl; the last one is the final evaluation.
    """

    configuration: Configuration
    shards: Sequence[Graph]
    entities: Vocabulary
    relations: Vocabulary
    tensors: Tensors
    metrics: Sequence[Mapping[str, Any]] = ()
    directory: Path | None = None
    ledger: Ledger | None = None
    """The promise and the spent budget of each client; None without a defence."""

    def __repr__(self) -> str:
        options, clients = self.configuration, len(self.shards)
        rounds, defence = options.training.rounds, options.privacy.defence
        parts = [
            f"{scorer_of(options).name}, {clients} client{'s' if clients > 1 else ''}, {options.federation.strategy}, "
            f"{rounds} round{'s' if rounds > 1 else ''}",
            "no defence" if self.ledger is None else f"defence {defence}, epsilon {options.privacy.epsilon}",
            "in memory" if self.directory is None else f"in {self.directory}",
        ]
        return f"Run of {options.data.source}: {'; '.join(parts)}"

    def epsilon(self) -> dict[str, float]:
        """The epsilon that each client has spent, at its delta; infinite without a defence."""
        if self.ledger is None:
            return dict.fromkeys(self.clients, math.inf)
        return {client: self.ledger.spent(client) for client in self.ledger.clients}

    @property
    def clients(self) -> list[str]:
        """The clients' names."""
        return client_names(len(self.shards))

    def embedding(self, client: str = "") -> Embedding:
        """The model of one client (the first by default), over its own entities and relations."""
        client = client or self.clients[0]
        if client not in self.clients:
            raise ConfigurationError(f"no client {client!r} in this run: expected one of {', '.join(self.clients)}")
        own = self.tensors[f"own/{client}"]
        table = self.tensors.get(f"entities/{client}")
        entities = self.tensors["entities"][own] if table is None else table
        tables = Tables(entities, self.tensors[f"relations/{client}"])
        return Embedding(scorer_of(self.configuration), tables, self.configuration.model.margin, self.prior(client))

    def released(self, client: str) -> Release | None:
        """What the client's model holds of what its defence released once; None where it released nothing."""
        start = f"counts/{client}/"
        arrays = {name.removeprefix(start): array for name, array in self.tensors.items() if name.startswith(start)}
        return chosen_defence(self.configuration).read_release(arrays) if arrays else None

    def prior(self, client: str) -> Prior | None:
        """What the client's release adds to its scores; None where it released nothing once."""
        released = self.released(client)
        return chosen_defence(self.configuration).prior(self.configuration, released) if released else None

    def evaluate(
        self,
        split: str = "test",
        *,
        as_a_client: bool = False,
        controls: bool = True,
        seen_only: bool = False,
        keep_leaked: bool | None = None,
        sample: int | None = None,
        threads: int | None = None,
    ) -> Evaluations:
        """Rank every client's held-out triples on both sides, beside the popularity controls.

        The filter contains all true triples among the client's names, also those of other clients: a model that
        learned one of them is not wrong. `as_a_client` filters by the client's own triples alone, as a client itself
        would. `seen_only` leaves out triples with a name that never occurs in the client's training triples. Triples
        that any client trains on are left out, unless `keep_leaked` or the configuration says otherwise.
        """
        keep = self.configuration.data.keep_leaked if keep_leaked is None else keep_leaked
        return Evaluations(
            {
                name: evaluate(
                    self.embedding(name),
                    shard,
                    split,
                    known=shard.all_triples if as_a_client else shard.true_triples,
                    controls=controls,
                    seen_only=seen_only,
                    keep_leaked=keep,
                    sample=sample,
                    threads=threads or None,
                )
                for name, shard in zip(self.clients, self.shards, strict=True)
                if (len(shard.split(split)) if keep else not leaked(shard, shard.split(split)).all())
            }
        )


def shape_of(configuration: Configuration) -> ModelShape:
    """The model shape of a configuration."""
    return ModelShape(configuration.model.dimension, configuration.model.margin, configuration.model.norm)


def scorer_of(configuration: Configuration) -> Scorer:
    """The scorer of a configuration.

    >>> scorer_of(Configuration.of(model="complex")).name
    'ComplEx'
    """
    return make_scorer(configuration.model.name, shape_of(configuration))


def provenance_of(shards: Sequence[Graph], configuration: Configuration, key: DataKey) -> dict[str, Any]:
    """What is saved beside the configuration: version, digests, and what must be acknowledged.

    `notice` may tell what was skipped in a private file. `acknowledgement` is what a public data set asks for.
    """
    notice = "\n".join(sorted({shard.notice for shard in shards if shard.notice}))
    return {
        "fedkge": __version__,
        "configuration": configuration.identity,
        "data": key.digest(shards),
        "notice": notice,
        "acknowledgement": notice if configuration.data.source in DATASETS else "",
    }


def check_has_data(path: Path, provenance: Mapping[str, Any]) -> None:
    """Refuse the run of a federation's server: it has no triples, relations or budgets of its sites."""
    if provenance.get("data") == AT_THE_SITES:
        raise RunError(
            f"{path}: expected a run with triples, got the run of a federation's server; triples, relations and "
            "budgets are at the sites. Use a site's run directory. To see all data, `fedkge federation gather` it"
        )


def check_same_data(directory: RunDirectory, provenance: Mapping[str, Any], shards: Sequence[Graph]) -> None:
    """Refuse other data than the run began with, both for resuming and for evaluation."""
    key, expected = directory.data_key(), str(provenance.get("data", ""))
    if key_name(expected) != key.name:
        raise RunError(
            f"{directory.path}: {CONFIG} has a digest of the data under key {key_name(expected) or 'none'}, but "
            f"{DATA_KEY} is key {key.name}. They are not of one run: restore both from one copy, or start a new run"
        )
    if key.digest(shards) != expected:
        raise RunError(f"{directory.path}: the run was trained on other data; restore that data, or start a new run")


class RunDirectory:
    """The files of one run. Each file is replaced atomically, so a crash never leaves a torn file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS
        self.ledger = path / LEDGER
        self.model = path / MODEL

    def exists(self) -> bool:
        """Whether a run has been started here."""
        return (self.path / CONFIG).exists()

    def create(self, configuration: Configuration, provenance: Mapping[str, Any]) -> None:
        """Make the directory. The configuration is written last, so a run exists only when it is complete.

        A run without a promise may be made again with other options: `provenance` then has its `run`.
        """
        if any(self.checkpoints.glob("*.safetensors")):
            raise RunError(
                f"{self.checkpoints}: these checkpoints belong to a run whose {CONFIG} is missing; "
                "move them away or choose another --out"
            )
        make_folder(self.checkpoints)
        if not (self.path / LEDGER).exists():
            write_atomically(self.path / LEDGER, b"")
        identity = {"run": fresh_token()} if chosen_defence(configuration).keeps_ledger else {}
        text = configuration.to_toml() + "\n" + tomlkit.dumps({"provenance": {**identity, **provenance}})
        write_atomically(self.path / CONFIG, text.encode())

    def data_key(self) -> DataKey:
        """The key for the digest of this run's data; a new key before the run exists."""
        path = self.path / DATA_KEY
        return read_key(path) if self.exists() or path.exists() else create_key(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training here. The lock ends with the process, even after a crash."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems have no locks
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise RunError(f"{self.path}: another process is training this run; wait for it") from error
            yield
        finally:
            os.close(descriptor)

    def earlier_ledgers(self) -> list[Path]:
        """The ledgers of defended runs that were overwritten here. Their spent budgets still count."""
        return sorted(self.path.glob(f"{self.ledger.stem}-*.jsonl"))

    def _free_name(self) -> Path:
        """A free path for this run's ledger. It is never the path of another ledger, even of a removed one."""
        names = (self.ledger.with_name(f"{self.ledger.stem}-{number:03d}.jsonl") for number in count(1))
        return next(name for name in names if not name.exists())

    def remove(self) -> None:
        """Delete everything here except ledgers; the configuration last, so that a half-removed run is still a run."""
        try:
            with self.locked():
                if self.ledger.exists() and self.ledger.stat().st_size:
                    self.ledger.rename(self._free_name())
                kept = set(self.earlier_ledgers())
                for entry in sorted(set(self.path.iterdir()) - kept, key=lambda entry: entry.name == CONFIG):
                    if entry.is_dir() and not entry.is_symlink():
                        shutil.rmtree(entry)
                    else:
                        entry.unlink()
        except OSError as error:
            raise RunError(f"{self.path}: could not be removed ({error.strerror or error})") from error

    def read_configuration(self) -> tuple[Configuration, dict[str, Any]]:
        """The saved configuration, resolved, and its provenance."""
        path = self.path / CONFIG
        if not path.exists():
            raise RunError(f"{self.path}: no run here (expected {CONFIG}); start one with `fedkge train --out`")
        values = read_table(path, "no such configuration file")
        provenance = values.pop("provenance", {})
        if not isinstance(provenance, dict):
            raise ConfigurationError(f"{path}: expected a table [provenance], got {provenance!r:.60}")
        try:
            return Configuration.of(**flat_options(values)), provenance
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from error

    def write_vocabularies(self, entities: Vocabulary, relations: Vocabulary) -> None:
        """Write one name per line. A backslash or a line break in a name is escaped."""
        for file, names in ((ENTITIES, entities), (RELATIONS, relations)):
            write_atomically(self.path / file, "".join(f"{escape(name)}\n" for name in names).encode())

    def read_vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Both saved vocabularies."""
        tables = []
        for file in (ENTITIES, RELATIONS):
            path = self.path / file
            if not path.exists():
                raise RunError(f"{path}: missing; the run has not finished its first round")
            lines = read_text(path, RunError, "restore it from a copy").split("\n")[:-1]
            tables.append(Vocabulary(tuple(unescape(line) for line in lines)))
        return tables[0], tables[1]

    def write_metrics(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write all lines so far."""
        write_atomically(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in history).encode())

    def read_metrics(self) -> list[dict[str, Any]]:
        """All lines so far. The list is empty before the first evaluation."""
        return read_metrics_file(self.path / METRICS)

    def write_model(self, tensors: Tensors, facts: Mapping[str, Any], best: bool = False) -> None:
        """Save the final model, or the best model so far."""
        save_tensors(self.checkpoints / f"best-{MODEL}" if best else self.model, tensors, facts)

    def read_model(self, best: bool = False) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The tensors of the finished run (or the best so far) and their facts."""
        path = self.checkpoints / f"best-{MODEL}" if best else self.model
        if not path.exists():
            raise RunError(f"{path}: missing; the run is not finished: `fedkge resume {self.path}`")
        return load_tensors(path)


def escape(name: str) -> str:
    r"""A name as one line of text.

    >>> escape("two\nlines"), unescape(escape("two\nlines")) == "two\nlines"
    ('two\\nlines', True)
    """
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def unescape(line: str) -> str:
    """The name that `escape` wrote."""
    parts = line.split("\\\\")
    return "\\".join(part.replace("\\n", "\n").replace("\\r", "\r") for part in parts)
