"""Targets for what people write: configuration, federation.toml, site.toml, key files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fedkge.configuration import Configuration, read_toml
from fedkge.defences import parse
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.keys import read_key
from fedkge.deploy.kit import own_workspace
from fedkge.deploy.request_keys import public_text
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.templates import federation_text, site_text
from fedkge.runs.transcript import recorded_rounds
from fuzz.files import file_target, fixed, folder_target
from fuzz.targets import Target


def _configuration(path: Path) -> None:
    values = read_toml(path)
    parse(values)
    Configuration.of(**values)


def _rounds(path: Path) -> None:
    recorded_rounds(path.read_bytes().decode("utf-8", "replace"), 50)


CONFIGURATION = (
    b'[model]\nname = "transe"\ndimension = 16\n[training]\nlearning-rate = 0.5\n'
    b'[privacy]\ndefence = "recommended"\nepsilon = 8.0\n'
)
FEDERATION = federation_text("study", "localhost", 8002, ("north", "south"), {"rounds": 3}).encode()
SITE = re.sub(r"(?m)^#.*\n", "", site_text("north", "study", {"epsilon": 8.0}, 3)).encode()
SERVICE = {"target": "localhost:8002", "scheme": "grpc"}
CLIENT = json.dumps({"servers": [{"name": "study", "identity": "localhost", "service": SERVICE}]}).encode()
KEY = b"fedkge-consortium-key-1 " + bytes(range(32)).hex().encode()
PUBLIC = public_text(bytes(range(32))).encode()
PEM = b"-----BEGIN CERTIFICATE-----\n"


def _kit(folder: Path) -> None:
    startup = folder / "startup"
    startup.mkdir(exist_ok=True)
    for file in folder.iterdir():
        if file.is_file():
            (startup / file.name).write_bytes(file.read_bytes())
    own_workspace(folder, folder.parent / "run", "north")


TARGETS: dict[str, Target] = {
    "configuration": file_target("config.toml", _configuration, [CONFIGURATION], ("fedkge.configuration",)),
    "federation": file_target(
        "federation.toml", read_federation, [FEDERATION], ("fedkge.deploy.federation_file", "fedkge.configuration")
    ),
    "site-settings": file_target(
        "site.toml", read_site, [SITE], ("fedkge.deploy.site_settings", "fedkge.configuration", "fedkge.deploy.policy")
    ),
    "key": file_target("consortium.key", read_key, [KEY], ("fedkge.deploy.keys",)),
    "kit": folder_target(
        fixed(fed_client__json=CLIENT, client__crt=PEM, client__key=PEM, rootCA__pem=PEM, requests__pub=PUBLIC),
        _kit,
        ("fedkge.deploy.kit", "fedkge.deploy.request_keys"),
    ),
    "record": file_target("rule", _rounds, [b"all", b"every:5", b"1,5,10"], ("fedkge.runs.transcript",)),
}
