"""Graphs by name or path: `load` finds them, `fetch` downloads them, `labels` returns words for their entities.

fedkge looks for a named data set in the cache folder (`FEDKGE_DATA`, else the platform's cache folder), then at its
public source. Every file of a named data set must have the checksum in the catalogue.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_dir

from fedkge.base.errors import ConfigurationError, DataError, UnavailableError
from fedkge.base.plain_files import home_expanded
from fedkge.base.registry import look_up
from fedkge.base.text import printable
from fedkge.graph.building import GraphBuilder
from fedkge.graph.catalogue import DATASETS, Dataset, SplitFile
from fedkge.graph.download import Advance, Opener, download, open_https
from fedkge.graph.folders import read_path
from fedkge.graph.graph import Graph
from fedkge.graph.numbered import find_file
from fedkge.graph.readers import Columns
from fedkge.graph.streams import COMPRESSIONS, decoded_lines, text_sha256

__all__ = ["DATASETS", "Dataset", "cache_folder", "fetch", "is_cached", "labels", "load"]


def load(
    name_or_path: str | os.PathLike[str], *, columns: Columns | None = None, skip_header: bool | None = None
) -> Graph:
    """Load a named data set, a folder or a file; a missing data set is downloaded.

    A known name always means the data set; write `./nations` or pass a Path for a folder of that name.
    `columns` names the head, relation and tail columns of CSV and Parquet files. `skip_header` is for TSV files: True
    skips their first line, False reads it as a triple, None refuses it where it looks like a header.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "graph.csv")
    ...     _ = file.write_text("who,does,whom\\na,likes,b\\n")
    ...     load(file, columns=("who", "does", "whom")).relations.names
    ('likes',)
    """
    if isinstance(name_or_path, str) and name_or_path in DATASETS:
        if columns is not None or skip_header:
            what = "columns can be chosen" if columns else "a header can be skipped"
            raise ConfigurationError(f"{what} for paths only, got the data set {name_or_path!r}")
        return _load_named(DATASETS[name_or_path])
    path = home_expanded(Path(name_or_path))
    if path.exists():
        return read_path(path, columns, skip_header)
    if isinstance(name_or_path, str) and path.name == name_or_path:
        try:
            look_up_dataset(name_or_path)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (and there is no such path)") from None
    raise DataError(f"{path}: no such file or folder")


def look_up_dataset(name: str) -> Dataset:
    """The entry of the catalogue, or an error that lists near names.

    >>> look_up_dataset("fb15k237")
    Traceback (most recent call last):
    ...
    fedkge.base.errors.ConfigurationError: unknown data set 'fb15k237': did you mean fb15k-237?
    """
    return look_up(DATASETS, name, "data set")


def cache_folder() -> Path:
    """The folder that holds one folder per data set."""
    chosen = os.environ.get("FEDKGE_DATA")
    return Path(chosen).expanduser() if chosen else Path(user_cache_dir("fedkge", appauthor=False), "data")


def is_cached(name: str) -> bool:
    """Whether loading the data set needs no download; files are looked for, not checked."""
    dataset = look_up_dataset(name)
    return bool(dataset.files) and not _missing(dataset)


def _missing(dataset: Dataset) -> list[SplitFile]:
    folder = cache_folder() / dataset.name
    return [file for file in dataset.files if find_file(folder, file.file_name) is None]


def _load_named(dataset: Dataset) -> Graph:
    if not dataset.files:
        from fedkge.graph.demo import demo_graph  # noqa: PLC0415 (only the demo needs it)

        return demo_graph()
    folder = fetch(dataset.name)
    builder = GraphBuilder()
    for file in dataset.files:
        path = find_file(folder, file.file_name) or folder / file.file_name
        got = text_sha256(path)
        if got != file.sha256:
            raise DataError(
                f"{path}: expected the sha256 {file.sha256} (of the uncompressed text with LF line ends), got {got}: "
                "remove the file, and it will be fetched again"
            )
        builder.add_file(file.split, path, skip_header=False)
    return builder.build(dataset.name)


def fetch(name: str, *, progress: bool = True, opener: Opener = open_https) -> Path:
    """Make sure that the data set's files are in the cache, and return its folder there.

    Every download is announced on stderr with its address; `progress` adds a bar.
    """
    dataset = look_up_dataset(name)
    if not dataset.files:
        raise ConfigurationError(f"{name} has no files to fetch: {dataset.advice}")
    folder = cache_folder() / dataset.name
    missing = _missing(dataset)
    if not missing:
        return folder
    if not dataset.downloadable:
        raise UnavailableError(f"{name} has no address to download from; {by_hand(dataset, folder, missing)}")
    for file in missing:
        target = folder / file.file_name
        try:
            with _progress_bar(file, target, progress) as advance:
                download(file.url, target, file.sha256, opener=opener, advance=advance)
        except UnavailableError as error:
            raise UnavailableError(f"{error}; {by_hand(dataset, folder, _missing(dataset))}") from error
    return folder


def by_hand(dataset: Dataset, folder: Path, missing: list[SplitFile]) -> str:
    """Which files to put where, for a machine that cannot download."""
    lines = [f"put these files there yourself (also with {', '.join(COMPRESSIONS)}), or set FEDKGE_DATA:"]
    if dataset.advice:
        lines.append(f"  {dataset.advice.format(name=dataset.name, folder=folder)}")
    for file in missing:
        origin = f" from {file.url}" if file.url else ""
        lines.append(f"  {folder / file.file_name}{origin} (sha256 of the text with LF line ends: {file.sha256})")
    return "\n".join(lines)


@contextmanager
def _progress_bar(file: SplitFile, target: Path, visible: bool) -> Iterator[Advance]:
    from rich.console import Console  # noqa: PLC0415 (a slow import that only downloads need)
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn  # noqa: PLC0415

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(printable(f"fetching {target} from {file.url}"), markup=False)
    bar = Progress(
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not visible,
    )
    with bar:
        task = bar.add_task(file.file_name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def labels(name: str) -> dict[str, str]:
    """Words for the entities of a named data set, as far as the cache has them beside the data.

    >>> labels("kinships")
    {}
    """
    dataset = look_up_dataset(name)
    if not dataset.files:
        from fedkge.graph.demo import demo_labels  # noqa: PLC0415

        return demo_labels()
    path = find_file(cache_folder() / dataset.name, "entity_labels.tsv")
    if path is None:
        return {}
    words: dict[str, str] = {}
    for number, line in decoded_lines(path):
        fields = line.split("\t")
        if len(fields) <= dataset.label_column:
            raise DataError(f"{path}:{number}: expected at least {dataset.label_column + 1} fields, got {len(fields)}")
        if fields[dataset.label_column]:
            words[fields[0]] = fields[dataset.label_column]
    return words
