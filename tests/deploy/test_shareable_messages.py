"""Every byte that a site sends, and all that others read of it, for neighbouring graphs with the same releases."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedkge.deploy.joint_alignment_rounds import EXPONENT
from fedkge.deploy.keys import create_key
from fedkge.deploy.layout import KEY, Layout
from fedkge.deploy.member import Member
from fedkge.deploy.policy import proposal
from fedkge.deploy.preview import preview
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.status import read_status
from fedkge.deploy.wire import decode, encode
from fedkge.federation.messages import Evaluate, Failure, Fit, Hello, Invite
from fedkge.report.shareable import MESSAGES, SITE_OUTPUTS
from tests.deploy.small import InOneProcess, small_layout
from tests.neighbours import Releases, graphs, neighbour

SHARDS = graphs()
DEFENCES: dict[str, dict[str, Any]] = {
    "recommended": {"defence": "recommended", "epsilon": 8.0},
    "noisy steps": {"defence": "noisy-steps", "epsilon": 8.0},
    "spent": {"defence": "dpsgd", "epsilon": 3.0, "noise": 1.0, "accountant": "rdp"},
}
VICTIM = "client-0"


class Told:
    """What the sites of one federation sent, by the kind of message, and what others can read."""

    def __init__(self, layout: Layout) -> None:
        self.messages: dict[str, list[bytes]] = {}
        self.read: dict[str, str] = {}
        self.layout = layout

    def hear(self, content: bytes) -> bytes:
        self.messages.setdefault(type(decode(content)).__name__, []).append(content)
        return content

    def run(self) -> None:
        """The whole federation, then questions that a site refuses."""
        found = preview(read_site(self.layout.sites[VICTIM]), proposal(self.layout.settings.configuration))
        self.read["preview"] = json.dumps([found.leaves, found.fingerprint])
        with InOneProcess(self.layout) as federation:
            for site in federation.sites.values():
                site.spoil = self.hear
            federation.run()
            self.ask(federation.sites[VICTIM].member)
        status = read_status(self.layout.settings.run)
        status.pop("seconds_left", None)
        self.read["status"] = re.sub(r"\d\d:\d\d:\d\d ", "", json.dumps(status))

    def ask(self, member: Member) -> None:
        """A site answers each of these with a refusal."""
        rows = {"entities": np.zeros((3, 8), np.float32)}
        invite = Invite("0.0.0", "try", {"rounds": 4})
        requests = [Evaluate(rows, "test"), Fit(99, rows), Fit(1, rows), Hello(), invite]
        for content in (*map(encode, requests), b"", b"\x00" * 64, encode(Failure("x", "y"))):
            self.hear(member.answer(content))


def layouts(folder: Path, privacy: dict[str, Any], part: str, **more: Any) -> tuple[Layout, Layout]:
    """Two federations that differ in one triple of the first site: the same key and exponents in both."""
    first = small_layout(folder / "with", privacy, data=SHARDS, **more)
    second = small_layout(folder / "without", privacy, data=neighbour(SHARDS, part), **more)
    shutil.copy(folder / "with" / KEY, folder / "without" / KEY)
    for name, path in first.sites.items():
        create_key(read_site(path).exponent, EXPONENT)
        shutil.copy(read_site(path).exponent, read_site(second.sites[name]).exponent)
    return first, second


def told(folder: Path, privacy: dict[str, Any], part: str = "train", **more: Any) -> tuple[Told, Told]:
    releases, (one, other) = Releases(), layouts(folder, privacy, part, **more)
    first, second = Told(one), Told(other)
    with releases.recorded():
        first.run()
    with releases.forced():
        second.run()
    return first, second


@pytest.mark.parametrize("name", DEFENCES)
def test_every_message_is_the_same_for_neighbours(name: str, tmp_path: Path) -> None:
    first, second = told(tmp_path, DEFENCES[name])
    assert first.messages == second.messages
    assert first.read == second.read
    assert set(first.read) == set(SITE_OUTPUTS)
    expected = {"Accept", "Greeting", "Upload", "Failure", "Kept"} | ({"Goodbye"} if name == "spent" else set())
    assert expected <= set(first.messages) <= set(MESSAGES)


def test_joint_alignment_and_owners_are_the_same_for_neighbours(tmp_path: Path) -> None:
    more = {"owners": 2, "alignment": "joint"}
    first, second = told(tmp_path, DEFENCES["recommended"], **more)
    assert first.messages == second.messages
    assert {"Aligned", "Sharing", "Upload"} <= set(first.messages) <= set(MESSAGES)


def test_sites_whose_names_follow_a_threshold_are_the_same_for_neighbours(tmp_path: Path) -> None:
    first, second = told(tmp_path, DEFENCES["recommended"], entities="threshold")
    assert first.messages == second.messages
    assert first.read == second.read


def test_held_out_triples_are_in_no_message(tmp_path: Path) -> None:
    first, second = told(tmp_path, DEFENCES["recommended"], "test")
    assert first.messages == second.messages
    assert first.read == second.read
