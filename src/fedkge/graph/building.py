"""From blocks of names to a Graph, in bounded memory: each block is numbered and then released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkge.base.errors import DataError
from fedkge.graph.graph import Graph, Triples, Vocabulary, distinct_triples, no_triples
from fedkge.graph.headers import check_same
from fedkge.graph.readers import Columns, NameBlock, read_names


class Numbering(dict[str, int]):
    """Gives every new name the next number; known names are found at the speed of a dictionary.

    >>> numbering = Numbering()
    >>> [numbering[name] for name in ("a", "b", "a")]
    [0, 1, 0]
    """

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number

    def numbers(self, names: Iterable[str], count: int) -> NDArray[np.int32]:
        """The numbers of `count` names, in order."""
        return np.fromiter(map(self.__getitem__, names), dtype=np.int32, count=count)


class GraphBuilder:
    """Collects splits and makes the Graph; names are numbered in order of appearance, as in `Graph.from_names`.

    >>> builder = GraphBuilder()
    >>> builder.add("train", [NameBlock(["a", "b"], ["likes", "likes"], ["b", "a"])])
    >>> builder.build("tiny").train.tolist()
    [[0, 0, 1], [1, 0, 0]]
    """

    def __init__(self) -> None:
        self.entities = Numbering()
        self.relations = Numbering()
        self._tables: dict[str, Triples] = {}
        self._skipped_literals = 0
        self._header: tuple[str, Path] | None = None

    def add(self, split: str, blocks: Iterable[NameBlock]) -> None:
        """Number the triples of one split."""
        tables = [self._numbered(block) for block in blocks]
        self._tables[split] = np.concatenate(tables) if tables else no_triples()

    def add_file(self, split: str, path: Path, columns: Columns | None = None, skip_header: bool | None = None) -> None:
        """Read one split from a file; a file without a single usable triple is an error."""
        self.add(split, self._same_header(path, read_names(path, columns, skip_header)))
        if not len(self._tables[split]):
            raise DataError(f"{path}: expected triples between entities, got only triples with literals")

    def _same_header(self, path: Path, blocks: Iterable[NameBlock]) -> Iterator[NameBlock]:
        """The blocks of one file; its header must equal the header of the earlier files."""
        for block in blocks:
            if block.skipped_header is not None:
                check_same(block.skipped_header, path, *(self._header or (block.skipped_header, path)))
                self._header = self._header or (block.skipped_header, path)
            yield block

    def _numbered(self, block: NameBlock) -> Triples:
        ends = [""] * (2 * len(block))
        ends[0::2], ends[1::2] = block.heads, block.tails
        table = np.empty((len(block), 3), dtype=np.int32)
        table[:, ::2] = self.entities.numbers(ends, len(ends)).reshape(-1, 2)
        table[:, 1] = self.relations.numbers(block.relations, len(block))
        self._skipped_literals += block.skipped_literals
        return table

    def build(self, name: str) -> Graph:
        """The Graph of all splits added so far."""
        skipped, header = self._skipped_literals, self._header
        notice = f"{name}: {skipped} triples with a literal object were skipped" if skipped else ""
        if header:
            notice = f"{name}: the first line of each file was skipped"
        entities, relations = Vocabulary(tuple(self.entities)), Vocabulary(tuple(self.relations))
        return graph_of_tables(name, entities, relations, self._tables, notice)


def graph_of_tables(
    name: str, entities: Vocabulary, relations: Vocabulary, tables: dict[str, Triples], notice: str = ""
) -> Graph:
    """A Graph of numbered splits, with repeated triples dropped from each split and counted.

    >>> twice = np.array([[0, 0, 1], [0, 0, 1]], dtype=np.int32)
    >>> graph_of_tables("tiny", Vocabulary("ab"), Vocabulary("r"), {"train": twice}).removed_duplicates
    1
    """
    distinct = {split: first_occurrences(table, len(entities), len(relations)) for split, table in tables.items()}
    removed = sum(len(tables[split]) - len(distinct[split]) for split in tables)
    return Graph(name, entities, relations, **distinct, removed_duplicates=removed, notice=notice)


def triple_keys(triples: Triples, entity_count: int, relation_count: int) -> NDArray[np.int64] | None:
    """One number per triple, equal exactly for equal triples; None where 64 bits are too few.

    >>> triple_keys(np.array([[1, 0, 2]], dtype=np.int32), entity_count=10, relation_count=3)
    array([32])
    """
    if entity_count * entity_count * relation_count > np.iinfo(np.int64).max:
        return None
    heads, relations, tails = triples.astype(np.int64).T
    keys: NDArray[np.int64] = (heads * relation_count + relations) * entity_count + tails
    return keys


def first_occurrences(triples: Triples, entity_count: int, relation_count: int) -> Triples:
    """`distinct_triples` by sorting one number per triple: about ten times as fast."""
    keys = triple_keys(triples, entity_count, relation_count)
    if keys is None or not len(triples):
        return distinct_triples(triples)
    _, first = np.unique(keys, return_index=True)
    if len(first) == len(triples):
        return np.ascontiguousarray(triples)
    return np.ascontiguousarray(triples[np.sort(first)])
