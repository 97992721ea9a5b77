"""Targets on disk: JSON lines by name, so that they outlive a change of numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fedkge.base.errors import DataError, FedkgeError
from fedkge.base.plain_files import parse_json, read_text
from fedkge.base.private_files import new_file
from fedkge.experiments.targets import Targets
from fedkge.graph import Vocabulary

FORMAT = "fedkge-targets-1"


def write_targets(path: Path, targets: Targets, entities: Vocabulary, relations: Vocabulary) -> None:
    """Write JSON lines by name: a header with the design, then one triple per line with its bit and its use.

    >>> from tempfile import TemporaryDirectory
    >>> names = Vocabulary(("a", "b"))
    >>> targets = Targets("B", np.array([[0, 0, 1]], np.int32), np.array([True]))
    >>> with TemporaryDirectory() as folder:
    ...     write_targets(Path(folder) / "targets.jsonl", targets, names, Vocabulary(("likes",)))
    ...     read_targets(Path(folder) / "targets.jsonl", names, Vocabulary(("likes",))).triples.tolist()
    [[0, 0, 1]]
    """
    header = {"format": FORMAT, "design": targets.design, "targets": len(targets), "all": len(targets.everything)}
    bits = np.concatenate([targets.members, targets.calibration_members]).tolist()
    rows = [
        {"head": entities[head], "relation": relations[relation], "tail": entities[tail], "member": bit}
        for (head, relation, tail), bit in zip(targets.everything.tolist(), bits, strict=True)
    ]
    beside = path.with_name(path.name + ".partial")
    new_file(beside)
    beside.write_text("".join(json.dumps(row) + "\n" for row in [header, *rows]), encoding="utf-8", newline="\n")
    beside.replace(path)


def read_targets(path: Path, entities: Vocabulary, relations: Vocabulary) -> Targets:
    """Read what `write_targets` wrote; a damaged line, or a name that the run lacks, is an error with its place."""
    rows, bits, number = [], [], 1
    lines = read_text(path, DataError, "draw them first").split("\n")[:-1]
    try:
        header = parse_json(lines[0])
        if header["format"] != FORMAT or header["all"] != len(lines) - 1:
            raise DataError(f"format {header['format']!r} with {len(lines) - 1} of {header['all']} triples")
        for line in lines[1:]:
            number, row = number + 1, parse_json(line)
            head, tail = entities.id_of(row["head"], "entity"), entities.id_of(row["tail"], "entity")
            rows.append((head, relations.id_of(row["relation"], "relation"), tail))
            bits.append((False, True).index(row["member"]))
        triples, members, count = np.array(rows, np.int32).reshape(-1, 3), np.array(bits, np.bool_), header["targets"]
        return Targets(header["design"], triples[:count], members[:count], triples[count:], members[count:])
    except (ValueError, LookupError, TypeError, AttributeError, FedkgeError) as error:
        raise DataError(f"{path}:{number}: expected {FORMAT} as `write_targets` writes it, got {error}") from error
