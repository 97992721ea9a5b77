"""Vectors for other programs.

Formats: safetensors (tables, names in the metadata), Parquet (kind, name, vector), word2vec text (entities; relations
in a second file), and a folder for PyKEEN (id maps and arrays in PyKEEN's layout).
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
from safetensors import SafetensorError

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.base.private_files import FOLDER_MODE, make_private, new_file
from fedkge.base.registry import look_up
from fedkge.base.tabular import Row, Tabular
from fedkge.models import Embedding
from fedkge.models.rotate import RotatE
from fedkge.models.tables import Table
from fedkge.runs.round import Shared
from fedkge.runs.run import Run
from fedkge.runs.strategies import strategy_of
from fedkge.runs.vectors.reading import KINDS, SINGULAR, relations_beside
from fedkge.store.durable_files import safetensors_parts

Named: TypeAlias = dict[Shared, tuple[Sequence[str], Table]]
"""For entities and relations, names in order and their table."""

LARGEST_METADATA = 90_000_000
"""safetensors allows a header of 100 MB."""


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Tabular):
    """What was written: how many rows of each kind, and which kinds were left out because clients differ in them."""

    path: Path
    counts: Mapping[Shared, int]
    left_out: tuple[Shared, ...]

    def title(self) -> str:
        """Where the vectors are."""
        return f"Vectors in {self.path}"

    def rows(self) -> list[Row]:
        """One row per kind that was written."""
        return [{"kind": kind, "vectors": count} for kind, count in self.counts.items()]


def export_vectors(run: Run, path: Path, format: str = "safetensors", client: str | None = None) -> Exported:  # noqa: A002
    """Write the vectors of one client, or without a client those on which all clients agree."""
    write = look_up(FORMATS, format, "export format")
    named = _of_client(run, client or run.clients[0]) if client or len(run.clients) == 1 else _agreed(run)
    if not named:
        raise ConfigurationError(
            f"the clients of this run share no vectors (strategy {run.configuration.federation.strategy}): "
            f"choose one with --client: {', '.join(run.clients)}"
        )
    embedding = run.embedding(client or "")
    try:
        make_private(path.parent)
        write(named, path, embedding)
    except (OSError, ValueError, SafetensorError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"{path}: could not be written ({said}); choose another --out") from error
    left_out = tuple(kind for kind in KINDS if kind not in named)
    return Exported(path, {kind: len(names) for kind, (names, _) in named.items()}, left_out)


def _of_client(run: Run, client: str) -> Named:
    tables = run.embedding(client).tables
    shard = run.shards[run.clients.index(client)]
    return {
        "entities": (list(shard.entities), tables.entities),
        "relations": (list(shard.relations), tables.relations),
    }


def _agreed(run: Run) -> Named:
    """The tables that the strategy keeps equal on all clients."""
    strategy = strategy_of(run.configuration)
    named: Named = {}
    if "entities" in run.tensors:
        named["entities"] = (list(run.entities), run.tensors["entities"])
    if strategy.pooled or "relations" in strategy.shared:
        rows: dict[str, Table] = {}
        for client, shard in zip(run.clients, run.shards, strict=True):
            rows.update(zip(shard.relations, run.tensors[f"relations/{client}"], strict=True))
        order = [name for name in run.relations if name in rows]
        named["relations"] = (order, np.array([rows[name] for name in order]))
    return named


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Where to write a file that replaces `path` when it is whole; nothing is left of it when writing fails."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    beside = path.with_name(path.name + ".partial")
    try:
        new_file(beside)
        yield beside
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _write_safetensors(named: Named, path: Path, _: Embedding) -> None:
    metadata: dict[str, str] = {
        kind: json.dumps(list(names), ensure_ascii=False) for kind, (names, _table) in named.items()
    }
    if sum(len(text.encode()) for text in metadata.values()) > LARGEST_METADATA:
        raise ConfigurationError("these names are too long for a safetensors header: choose --format parquet")
    with _whole(path) as beside, beside.open("wb") as file:
        file.writelines(safetensors_parts({kind: table for kind, (_, table) in named.items()}, metadata))


def _write_parquet(named: Named, path: Path, _: Embedding) -> None:
    import pyarrow as pa  # noqa: PLC0415 (heavy)
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = pa.schema([("kind", pa.string()), ("name", pa.string()), ("vector", pa.list_(pa.float32()))])
    with _whole(path) as beside, pq.ParquetWriter(beside, schema, compression="zstd") as writer:
        for kind, (names, table) in named.items():
            offsets = np.arange(len(names) + 1, dtype=np.int64) * table.shape[1]
            flat = pa.array(np.ascontiguousarray(table, dtype=np.float32).ravel())
            vectors = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)
            columns = [pa.array([SINGULAR[kind]] * len(names)), pa.array(list(names), pa.string()), vectors]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _write_word2vec(named: Named, path: Path, _: Embedding) -> None:
    for kind, (names, table) in named.items():
        target = path if kind == "entities" or "entities" not in named else relations_beside(path)
        with _whole(target) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{len(names)} {table.shape[1]}\n")
            for name, row in zip(names, table.astype(np.float32), strict=True):
                file.write(f"{_one_word(name)} {' '.join(map(str, row.tolist()))}\n")


def _one_word(name: str) -> str:
    """A name without blanks, which separate numbers in this format: they become %20 as in addresses."""
    return "".join(quote(letter) if letter == "%" or letter.isspace() else letter for letter in name) or "%00"


def _write_pykeen(named: Named, path: Path, embedding: Embedding) -> None:
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    for kind, (names, table) in named.items():
        new_file(path / f"{kind}.npy")
        new_file(path / f"{SINGULAR[kind]}_to_id.tsv")
        np.save(path / f"{kind}.npy", _pykeen_layout(kind, table, embedding), allow_pickle=False)
        with (path / f"{SINGULAR[kind]}_to_id.tsv").open("w", encoding="utf-8", newline="\n") as file:
            file.write("id\tlabel\n")
            file.writelines(f"{place}\t{_cell(name)}\n" for place, name in enumerate(names))


def _cell(name: str) -> str:
    if any(letter in name for letter in "\t\r\n"):
        raise DataError(f"expected names without tabs and line ends for a TSV map, got {name!r}: choose another format")
    return name


def _pykeen_layout(kind: Shared, table: Table, embedding: Embedding) -> np.ndarray[Any, Any]:
    """Complex numbers where PyKEEN has them; RotatE's relations as unit complex numbers, not as phases."""
    scorer = embedding.scorer
    if isinstance(scorer, RotatE) and kind == "relations":
        turns: np.ndarray[Any, Any] = np.exp(1j * np.pi / scorer.phase_range * table.astype(np.float64))
        return turns.astype(np.complex64)
    if scorer.entity_width(1) == 1:
        return np.ascontiguousarray(table, dtype=np.float32)
    half = table.shape[1] // 2
    numbers: np.ndarray[Any, Any] = table[:, :half] + 1j * table[:, half:]
    return numbers.astype(np.complex64)


FORMATS: dict[str, Callable[[Named, Path, Embedding], None]] = {
    "safetensors": _write_safetensors,
    "parquet": _write_parquet,
    "word2vec": _write_word2vec,
    "pykeen": _write_pykeen,
}
ENDINGS = {"safetensors": ".safetensors", "parquet": ".parquet", "word2vec": ".txt", "pykeen": "-pykeen"}
