"""Another site and a local process try to make a site train, through NVFlare: the site obeys its server alone."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="a federation of processes needs fedkge[nvflare]")

from fedkge.deploy.keys import Key
from fedkge.deploy.layout import Layout
from fedkge.deploy.request_keys import read_signing_key
from fedkge.deploy.signatures import Address, Refusal, Signer
from fedkge.deploy.wire import encode
from fedkge.federation.messages import Fit
from tests.deploy.attacker import job_process, memory, own_credentials
from tests.deploy.small import DEFENDED, Parties, aligned, deployed, embedded, notes, small_layout, spent_rounds

pytestmark = pytest.mark.slow

ROUNDS, VICTIM = 60, "client-1"
STRANGE_TOPIC = "mallory\x1b[2J\nround 9: all is well"
FLOOD, MOST_GROWTH = 2_000, 200_000_000
TRAINING = {**DEFENDED, "local_steps": 1000, "batch_size": 64, "rounds": ROUNDS}


def forged(layout: Layout, job: str) -> list[tuple[str, dict[str, Any]]]:
    """A ping, and requests for the last round: without a seal, by another key, for others, old, and changed."""
    genuine = read_signing_key(layout.settings.kits / "server" / "startup")
    rows = np.zeros((len(aligned(layout)[VICTIM].entities), 8), np.float32)
    content = encode(Fit(ROUNDS, {"entities": rows}))
    here = Address(layout.settings.name, VICTIM, job)

    def sealed(key: Key, address: Address, number: int) -> bytes:
        return Signer(key, address.federation, address.job, lambda: number).seal(address.site, bytes(16), content)[1]

    now = time.time_ns()
    seal = sealed(genuine, here, now)
    flipped = bytes([*content[:-1], content[-1] ^ 1])
    sent = [
        (b"", content),
        (seal[:-1], content),
        (sealed(Key.fresh(), here, now), content),
        (sealed(genuine, replace(here, site="client-0"), now), content),
        (sealed(genuine, replace(here, federation="other"), now), content),
        (sealed(genuine, replace(here, job="an-earlier-job"), now), content),
        (bytes([seal[0], seal[1] ^ 1, *seal[2:]]), content),
        (seal, flipped),
        (sealed(genuine, here, 1), content),
    ]
    messages: list[tuple[str, dict[str, Any]]] = [("fedkge.ping", {"number": now}), (STRANGE_TOPIC, {})]
    for one, body in sent:
        fields = {"number": "0" * 32, "seal": {"hex": one.hex()}, "content": {"hex": body.hex()}}
        messages.append(("fedkge.request", fields))
    return messages


def run_attack(path: Path, plan: dict[str, Any]) -> list[str]:
    path.write_text(json.dumps(plan), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.deploy.attacker", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    codes: list[str] = json.loads(path.with_suffix(".codes").read_text(encoding="utf-8"))
    return codes


def test_nobody_but_the_server_makes_a_site_train(tmp_path: Path) -> None:
    layout = small_layout(tmp_path, DEFENDED, training=TRAINING, federation={"round-seconds": 600})
    victim, other = (layout.sites[name].parent for name in (VICTIM, "client-2"))
    with Parties(layout) as parties:
        parties.start()
        parties.wait_for_round(1)
        process, listener, job = job_process(victim)
        before = memory(process)
        plan = {"target": f"{VICTIM}.{job}", "messages": forged(layout, job), "flood": FLOOD}
        local = {"name": f"{VICTIM}.mallory", "parent": listener, "credentials": []}
        of_process = run_attack(tmp_path / "local.json", {**plan, **local})
        number, own_listener, _ = job_process(other)
        site = {"name": "client-2.mallory", "parent": own_listener, "credentials": own_credentials(number, "client-2")}
        of_site = run_attack(tmp_path / "site.json", {**plan, **site})
        grown = memory(process) - before
        parties.finish()
    expected = ["OK", "TOPIC_UNKNOWN", *["BAD_REQUEST_DATA"] * 9, "OK"]
    assert of_process == of_site == expected, "each arrives, and gets the same reply"
    assert np.array_equal(deployed(layout), embedded(layout))
    assert spent_rounds(victim / "run", VICTIM) == list(range(1, ROUNDS + 1)), "nothing else was trained or charged"
    assert "left out" not in notes(layout.settings.run)
    assert grown < MOST_GROWTH
    log = (victim / "run" / "nvflare.log").read_text(encoding="utf-8")
    for reason in (Refusal.MALFORMED, Refusal.FORGED, Refusal.CHANGED, Refusal.REPLAYED):
        assert reason.value in log
    assert "mallory\\x1b[2J" in log
    assert "\x1b[2J" not in log, "nor a line that he wrote"
