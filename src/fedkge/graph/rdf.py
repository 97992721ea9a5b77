"""RDF files, N-Triples and Turtle, through pyoxigraph.

IRIs (without their angle brackets) and blank nodes (as `_:name`) are entities. Embeddings have no use for literals:
a triple whose object is a literal is skipped and counted, and the count reaches the user in the graph's notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from fedkge.errors import DataError
from fedkge.graph.streams import format_suffix, open_bytes

RDF_SUFFIXES = (".nt", ".ttl")

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
    skipped = 0
    with open_bytes(path) as stream:
        try:
            # An IRI is its own identifier, so a relative one gets the same base on every machine.
            for quad in pyoxigraph.parse(stream, format=kind, base_iri="file:///"):
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
    if subjects or skipped:
        yield subjects, predicates, objects, skipped


def _entity(term: object) -> str:
    """The IRI itself, or `_:name` for a blank node; what else RDF may hold is written in its own syntax."""
    import pyoxigraph  # noqa: PLC0415

    return term.value if isinstance(term, pyoxigraph.NamedNode) else str(term)
