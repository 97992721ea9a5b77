"""RDF files, N-Triples and Turtle, through pyoxigraph.

IRIs (without their angle brackets) and blank nodes (as `_:name`) are entities. Embeddings have no use for literals:
a triple whose object is a literal is skipped and counted, and the count reaches the user in the graph's notice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from fedkge.base.errors import DataError
from fedkge.graph.streams import format_suffix, open_bytes

RDF_SUFFIXES = (".nt", ".ttl")
OPENING = b"<<"
BRACKETS = re.compile(rb"<<\(|\)>>")
OLDER_BRACKETS = re.compile(rb"<<|>>")
"""pyoxigraph 0.4 reads RDF-star, whose quoted triples are `<< s p o >>`."""
BUFFER = "buffer maximal size"
DEEPEST = 1000
"""Triple terms within triple terms; the parser is recursive there, and 200,000 of them end the process."""

TermBlock: TypeAlias = tuple[list[str], list[str], list[str], int]
"""Subjects, predicates, objects, and how many triples with a literal were skipped among them."""


def read_rdf_terms(path: Path, rows_per_block: int) -> Iterator[TermBlock]:
    """The triples of an N-Triples (.nt) or Turtle (.ttl) file, block by block, compressed or not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "train.nt")
    ...     _ = file.write_text('<http://x/a> <http://x/p> _:b .\\n<http://x/a> <http://x/p> "text" .\\n')
    ...     list(read_rdf_terms(file, rows_per_block=10))
    [(['http://x/a'], ['http://x/p'], ['_:b'], 1)]
    """
    import pyoxigraph  # noqa: PLC0415 (only RDF needs it)

    kind = pyoxigraph.RdfFormat.N_TRIPLES if format_suffix(path) == ".nt" else pyoxigraph.RdfFormat.TURTLE
    subjects: list[str] = []
    predicates: list[str] = []
    objects: list[str] = []
    skipped = done = 0
    with open_bytes(path) as stream:
        try:
            # An IRI is its own identifier, so a relative one gets the same base on every machine.
            for quad in pyoxigraph.parse(cast(BinaryIO, _Shallow(stream, path)), format=kind, base_iri="file:///"):
                done += 1
                if isinstance(quad.object, pyoxigraph.Literal):
                    skipped += 1
                    continue
                subjects.append(_entity(quad.subject))
                predicates.append(quad.predicate.value)
                objects.append(_entity(quad.object))
                if len(subjects) == rows_per_block:
                    yield subjects, predicates, objects, skipped
                    subjects, predicates, objects, skipped = [], [], [], 0
        except SyntaxError as error:
            raise DataError(f"{path}:{error.lineno}: expected {kind.name}, got: {error.msg}") from error
        except (MemoryError, OSError) as error:  # what the parser raises for a token that is larger than its buffer
            if isinstance(error, OSError) and BUFFER not in str(error):
                raise
            raise DataError(
                f"{path}: expected IRIs and literals below 16 MiB, got a longer one after {done} triples ({error})"
            ) from error
    if subjects or skipped:
        yield subjects, predicates, objects, skipped


class _Shallow:
    """A stream whose triple terms, `<<( s p o )>>`, nest no deeper than the parser's stack can bear.

    Brackets in literals are counted too; only thousands of them that never close would be taken for nesting.
    """

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self._open, self._tail = 0, b""
        self._brackets = OLDER_BRACKETS if version("pyoxigraph").startswith("0.4.") else BRACKETS

    def read(self, size: int = -1) -> bytes:
        """What the stream gives, after a look at its brackets."""
        chunk = self._stream.read(size)
        seen = self._tail + chunk
        self._tail = seen[-2:] if self._brackets is BRACKETS else b""  # half a bracket may end the chunk
        for bracket in self._brackets.findall(seen):
            self._open = max(0, self._open + (1 if bracket.startswith(OPENING) else -1))
            if self._open > DEEPEST:
                raise DataError(f"{self._path}: expected at most {DEEPEST} triple terms within each other, got more")
        return chunk


def _entity(term: object) -> str:
    """The IRI itself, or `_:name` for a blank node; what else RDF may hold is written in its own syntax."""
    import pyoxigraph  # noqa: PLC0415

    return term.value if isinstance(term, pyoxigraph.NamedNode) else str(term)
