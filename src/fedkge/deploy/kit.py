"""A start-up kit comes from the coordinator. A site takes certificates and an address from it, and nothing else.

NVFlare runs a kit as it is: code in `local/custom`, components in its JSON files, constructors in its logging
configuration, and a policy in `local` that allows further code. So the author of a kit could decide what the site runs.
Therefore the site's own fedkge writes the workspace of the site's NVFlare. It takes only these parts from the kit: two
certificates, a key, the server's name and address, and the public key that checks the server's requests.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from fedkge.base.errors import DataError, UnavailableError
from fedkge.base.plain_files import parse_json
from fedkge.deploy.logs import LOG_CONFIGURATION, nvflare_logging
from fedkge.deploy.provision import site_permissions, site_resources, write_local
from fedkge.deploy.request_keys import PUBLIC_FILE, public_text, read_public_key
from fedkge.store.durable_files import make_folder, write_atomically

FOLDER = "nvflare"
PEM_FILES = ("client.crt", "client.key", "rootCA.pem")
MOST_BYTES = 65536
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_TARGET = re.compile(r"[A-Za-z0-9_.-]{1,253}:[0-9]{1,5}")


def own_workspace(kit: Path, run: Path, site: str) -> Path:
    """Write a new workspace for a site's NVFlare from the allowed parts of the kit; returns its path.

    Folders of earlier jobs stay. `startup` and `local` are rewritten, so changes to them do not last.
    """
    if not (kit / "startup").is_dir():
        raise UnavailableError(f"{kit}: expected a start-up kit (a folder with `startup` in it); unpack it")
    address = _address(kit / "startup" / "fed_client.json")
    papers = {name: _pem(kit / "startup" / name) for name in PEM_FILES}
    public = read_public_key(kit / "startup")
    workspace = run / FOLDER
    for name in ("startup", "local"):
        shutil.rmtree(workspace / name, ignore_errors=True)
        make_folder(workspace / name)
    for name, content in papers.items():
        write_atomically(workspace / "startup" / name, content)
    write_atomically(workspace / "startup" / PUBLIC_FILE, public_text(public).encode("ascii"))
    write_atomically(workspace / "startup" / "fed_client.json", json.dumps(_client(address, site)).encode())
    write_local(workspace / "local", site_resources(), site_permissions())
    write_atomically(workspace / "local" / LOG_CONFIGURATION, nvflare_logging())
    return workspace


def _client(address: dict[str, str], site: str) -> dict[str, Any]:
    return {
        "format_version": 2,
        "servers": [
            {
                "name": address["name"],
                "service": {"target": address["target"], "scheme": address["scheme"]},
                "identity": address["identity"],
            }
        ],
        "client": {
            "ssl_private_key": "client.key",
            "ssl_cert": "client.crt",
            "ssl_root_cert": "rootCA.pem",
            "fqsn": site,
            "is_leaf": True,
            "connection_security": "mtls",
        },
    }


def _address(path: Path) -> dict[str, str]:
    """The server's address in the kit; the rest of the file is ignored."""
    try:
        server = parse_json(_read(path))["servers"][0]
        service = server["service"]
        found = {
            "name": server["name"],
            "identity": server["identity"],
            "target": service["target"],
            "scheme": service["scheme"],
        }
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path}: expected the name and address of one server, got something else") from error
    fits = {
        "name": _NAME,
        "identity": _NAME,
        "target": _TARGET,
        "scheme": re.compile("grpc|http|tcp"),
    }
    for key, value in found.items():
        if not isinstance(value, str) or not fits[key].fullmatch(value):
            raise DataError(f"{path}: expected a plain {key} of the server, got {value!r:.60}")
    return found


def _pem(path: Path) -> bytes:
    content = _read(path)
    if not content.startswith(b"-----BEGIN "):
        raise DataError(f"{path}: expected a certificate or key in PEM form, got something else")
    return content


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnavailableError(f"{path}: missing from the start-up kit ({error.strerror or error})") from error
    if len(content) > MOST_BYTES:
        raise DataError(f"{path}: expected at most {MOST_BYTES:,} bytes in a file of a start-up kit")
    return content
