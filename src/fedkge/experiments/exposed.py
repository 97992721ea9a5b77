"""Which of the attacked triples an attack found, by name: for the owner of the data and nobody else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Scores
from fedkge.experiments.targets import Design, Targets
from fedkge.graph import Vocabulary
from fedkge.runs.view import Attacker
from fedkge.store.durable_files import write_atomically

EXPOSED = "exposed.json"
RATE = 0.01
"""Share of the non-members that may be accused wrongly; with fewer than 100 of them, none."""

LastScores: TypeAlias = tuple[int, Scores, Mapping[Design, Targets]]
"""Of an attack's last round: its number, and the scores of all these targets in a row."""


def found_members(scores: Scores, members: NDArray[np.bool_], rate: float = RATE) -> NDArray[np.intp]:
    """The members above the threshold that at most `rate` of the non-members reach.

    >>> found_members(np.array([3.0, 0.5, 2.0, 1.0]), np.array([True, True, True, False])).tolist()
    [0, 2]
    """
    outside = np.sort(scores[~members])
    allowed = int(rate * len(outside) + 1e-9)
    return np.flatnonzero(members & (scores > outside[len(outside) - 1 - allowed]))


def write_exposed(
    run: Path,
    latest: Mapping[tuple[str, Attacker], LastScores],
    entities: Vocabulary,
    relations: Vocabulary,
) -> None:
    """Keep, of each attack's last round, the members that it found."""
    entries = []
    for (attack, adversary), (number, scores, targets) in latest.items():
        first = 0
        for design, target in targets.items():
            part = np.asarray(scores[first : first + len(target)], dtype=np.float64)
            found = target.triples[found_members(part, target.members)].tolist()
            names = [(entities[head], relations[relation], entities[tail]) for head, relation, tail in found]
            facts = {"attack": attack, "adversary": adversary, "design": design, "round": number}
            entries.append({**facts, "members": int(target.members.sum()), "found": names})
            first += len(target.everything)
    write_atomically(run / EXPOSED, json.dumps({"format": 1, "fpr": RATE, "attacks": entries}).encode())
