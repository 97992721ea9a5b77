"""Attacks: what each adversary can infer from what it saw."""

from __future__ import annotations

from fedkge.attacks.attack import Attack, Needs, check
from fedkge.attacks.cip import CIP, CIPCollusion, CIPMatched
from fedkge.attacks.rows_changed import RowsChanged, rows_changed
from fedkge.attacks.si import COLLUSION as SI_COLLUSION
from fedkge.attacks.si import MODELS, SICentres, SILink
from fedkge.attacks.si_published import SIPublished
from fedkge.attacks.structure import COLLUSION, relations_of_client
from fedkge.attacks.trajectory import Trajectory
from fedkge.attacks.upload_difference import UploadCombined, UploadDifference
from fedkge.base.registry import look_up
from fedkge.runs.view import Adversary, View

_ALL: tuple[Attack, ...] = (
    SIPublished(),
    SICentres(),
    SILink(),
    SICentres("si-collusion", relations_of_client, SI_COLLUSION),
    CIP("cip-published", "ratio", Needs(adversary=("client",), published=True)),
    CIP(),
    CIP("cip-distance-ratio", "distance-ratio", Needs(adversary=("client",), models=MODELS)),
    CIPMatched(),
    CIPCollusion(),
    UploadDifference(),
    UploadDifference("upload-difference-collusion", relations_of_client, COLLUSION),
    UploadCombined(),
    Trajectory(),
    Trajectory("trajectory-collusion", relations_of_client, COLLUSION),
)

ATTACKS: dict[str, Attack] = {attack.name: attack for attack in _ALL}
"""Every passive attack by the name of its option value; a new attack is one file and one line above."""


def make_attack(name: str) -> Attack:
    """The attack called `name`, or an error that lists the near names.

    >>> make_attack("cip").needs.adversary
    ('client',)
    """
    return look_up(ATTACKS, name, "attack")


__all__ = [
    "ATTACKS",
    "Adversary",
    "Attack",
    "Needs",
    "RowsChanged",
    "View",
    "check",
    "make_attack",
    "rows_changed",
]
