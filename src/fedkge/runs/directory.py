"""The directory of a run: its files, whose data it belongs to, and the lock that keeps other processes out."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import tomlkit
from numpy.typing import NDArray

from fedkge import __version__
from fedkge.accounting.ledger_lines import fresh_token
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.base.plain_files import read_text
from fedkge.configuration import Configuration, flat_options, read_table
from fedkge.defences import chosen_defence
from fedkge.graph import Graph, Vocabulary
from fedkge.graph.catalogue import DATASETS
from fedkge.store.data_key import FILE_NAME as DATA_KEY
from fedkge.store.data_key import DataKey, create_key, key_name, read_key
from fedkge.store.durable_files import Tensors, load_tensors, make_folder, save_tensors, write_atomically
from fedkge.store.result_files import read_metrics_file

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
