"""Header lines of TSV files: found by their words, so that they never become a triple by accident.

A graph file in TSV has no header. If the first line contains column names, the reader refuses it and offers to skip it;
the user may also declare it a triple.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fedkge.base.errors import DataError

Fields = Sequence[str]

_ENDING = "(id|name|entity|node|label|iri|uri|type)?"
WORDS = {
    "head": re.compile(f"(head|h|subject|subj|sub|s|source|src|from|start|entity1|node1|arg1){_ENDING}"),
    "relation": re.compile(f"(relation|relationship|rel|r|predicate|pred|p|property|edge|link|type){_ENDING}"),
    "tail": re.compile(f"(tail|t|object|obj|o|target|tgt|destination|dest|dst|to|end|entity2|node2|arg2){_ENDING}"),
}
ORDER = tuple(WORDS)
OPTION = "--skip-header (in a file: skip-header = true)"


def column_order(fields: Fields) -> tuple[str, ...] | None:
    """The column that each field names, if the three fields name head, relation and tail in any order.

    >>> column_order(["Subject", "predicate_id", "Object"]), column_order(["from", "to", "type"])
    (('head', 'relation', 'tail'), ('head', 'tail', 'relation'))
    >>> column_order(["aspirin", "treats", "headache"]) is None
    True
    """
    words = [re.sub(r"[\W_]", "", field.casefold()) for field in fields]
    named = tuple(next((column for column in WORDS if WORDS[column].fullmatch(word)), "") for word in words)
    return named if len(words) == len(ORDER) and set(named) == set(ORDER) else None


def refuse_header(fields: Fields, path: Path) -> None:
    """Refuse triples (all fields in a row) whose first line is a header.

    If these words occur again in later lines, they are names, and the line is a triple.
    """
    order = column_order(fields[:3])
    if order is None:
        return
    _refuse_order(order, fields[:3], path)
    heads, relations, tails = fields[0::3], fields[1::3], fields[2::3]
    entities = {fields[0], fields[2]}
    again = relations.count(fields[1]) > 1 or any(name in entities for column in (heads, tails) for name in column[1:])
    if not again:
        raise DataError(
            f"{path}:1: expected a triple, got what looks like a header: {', '.join(fields[:3])!r}; skip it with "
            f"{OPTION}, or keep it as a triple with --no-skip-header"
        )


def check_skipped(line: str, path: Path) -> None:
    """Refuse a header that is skipped, if it says that the columns stand in another order than head, relation, tail."""
    order = column_order(line.split("\t"))
    if order is not None:
        _refuse_order(order, line.split("\t"), path)


def check_same(line: str, path: Path, earlier: str, earlier_path: Path) -> None:
    """Refuse to skip the first line of a file, if an earlier file of the graph had another: it may be a triple.

    >>> check_same("head\\trelation\\ttail", Path("test.tsv"), "head\\trelation\\ttail", Path("train.tsv"))
    """
    if line != earlier:
        raise DataError(
            f"{path}:1: expected the header of {earlier_path.name} ({earlier[:100]!r}) to skip, got {line[:100]!r}: "
            "give all files the same header, or none"
        )


def _refuse_order(order: tuple[str, ...], fields: Fields, path: Path) -> None:
    if order != ORDER:
        raise DataError(
            f"{path}:1: expected the columns head, relation, tail, got a header that says {', '.join(order)} "
            f"({', '.join(fields)!r}): reorder the columns, or save the file as CSV, where columns are found by name"
        )
