"""A start-up kit from a coordinator who is not honest: nothing of it is run, and nothing of it is believed."""

import json
import logging
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare", reason="needs fedkge[nvflare]")

from fedkge.base.errors import FedkgeError
from fedkge.deploy.kit import own_workspace
from fedkge.deploy.logs import MOST_LINES, Measured
from fedkge.deploy.provision import EXECUTOR
from fedkge.deploy.request_keys import PUBLIC_FILE, public_text

SERVER = {
    "name": "study",
    "service": {"target": "kge.example.org:8002", "scheme": "http"},
    "identity": "kge.example.org",
}


def kit(folder: Path, **changes: Any) -> Path:
    startup, local = folder / "kit" / "startup", folder / "kit" / "local"
    (local / "custom").mkdir(parents=True)
    startup.mkdir()
    for name in ("client.crt", "client.key", "rootCA.pem"):
        (startup / name).write_text(f"-----BEGIN {name}-----\n", encoding="ascii")
    (startup / PUBLIC_FILE).write_text(public_text(bytes(range(32))) + " ", encoding="ascii")
    client = {"format_version": 2, "servers": [{**SERVER, **changes}], "client": {}}
    client["components"] = [{"id": "spy", "path": "os.system", "args": {"command": "true"}}]
    (startup / "fed_client.json").write_text(json.dumps(client), encoding="utf-8")
    (startup / "sub_start.sh").write_text("exit 1\n", encoding="utf-8")
    (local / "custom" / "spy.py").write_text("raise SystemExit\n", encoding="utf-8")
    (local / "resources.json").write_text('{"class_allow_list": ["*"], "allow_log_streaming": true}', encoding="utf-8")
    (local / "authorization.json").write_text('{"permissions": {"lead": {"byoc": "any"}}}', encoding="utf-8")
    (local / "log_config.json").write_text('{"formatters": {"f": {"()": "os.system"}}}', encoding="utf-8")
    (local / "relay__resources.json").write_text("{}", encoding="utf-8")
    (folder / "kit" / "numpy.py").write_text("raise SystemExit\n", encoding="utf-8")
    return folder / "kit"


def test_only_certificates_and_the_address_are_taken(tmp_path: Path) -> None:
    made = own_workspace(kit(tmp_path), tmp_path / "run", "north")
    files = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert files == {
        "startup/client.crt",
        "startup/client.key",
        "startup/rootCA.pem",
        "startup/requests.pub",
        "startup/fed_client.json",
        "local/resources.json",
        "local/authorization.json",
        "local/log_config.json",
    }
    client = json.loads((made / "startup" / "fed_client.json").read_text(encoding="utf-8"))
    assert client["servers"] == [SERVER]
    assert client["client"]["fqsn"] == "north"
    assert set(client) == {"format_version", "servers", "client"}


def test_the_policy_is_the_sites_own(tmp_path: Path) -> None:
    local = own_workspace(kit(tmp_path), tmp_path / "run", "north") / "local"
    resources = json.loads((local / "resources.json").read_text(encoding="utf-8"))
    assert resources["class_allow_list"] == [EXECUTOR]
    assert resources["class_list_enforcement_mode"] == "enforce"
    assert resources["allow_log_streaming"] is False
    permissions = json.loads((local / "authorization.json").read_text(encoding="utf-8"))["permissions"]
    assert {role: rights["byoc"] for role, rights in permissions.items()} == {"lead": "none"}
    assert "os.system" not in (local / "log_config.json").read_text(encoding="utf-8")


def test_nvflares_own_lines_print_whoever_sent_what_is_in_them(tmp_path: Path) -> None:
    """NVFlare writes down the topic of a message that it does not know, as anybody in its net chose it."""
    local = own_workspace(kit(tmp_path), tmp_path / "run", "north") / "local"
    code = (
        "import json, logging.config, sys; logging.config.dictConfig(json.load(open(sys.argv[1])));"
        "log = logging.getLogger('nvflare.private');"
        "log.error('unknown topic %s', 'a\\x1b[2J\\nround 9: ' + 'x' * 10**6);"
        "[log.error('unknown topic %d', number) for number in range(10_000)]"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, local / "log_config.json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    for text in (said.stdout, (tmp_path / "log.txt").read_text("utf-8"), (tmp_path / "log.json").read_text("utf-8")):
        assert "unknown topic a" in text
        assert "\x1b[2J" not in text
        assert text.count("\n") <= 2 * MOST_LINES, "of two minutes at most"
        assert len(text) < 200_000


def test_lines_that_were_left_out_are_counted_and_fedkges_own_never_are() -> None:
    now = [0.0]
    measured = Measured(lambda: now[0])

    def written(name: str, times: int) -> int:
        return sum(measured.filter(logging.makeLogRecord({"name": name, "msg": "line"})) for _ in range(times))

    assert written("nvflare.private", MOST_LINES + 7) == MOST_LINES
    assert written("nvflare.other", 3) == 3
    assert written("fedkge.site", MOST_LINES + 7) == MOST_LINES + 7
    now[0] = 60.0
    after = logging.makeLogRecord({"name": "nvflare.private", "msg": "line"})
    assert measured.filter(after)
    assert measured.filter(after), "another handler asks again"
    assert after.getMessage() == "(7 lines were left out before) line"


def test_what_somebody_changes_does_not_last(tmp_path: Path) -> None:
    source = kit(tmp_path)
    made = own_workspace(source, tmp_path / "run", "north")
    (made / "local" / "custom").mkdir()
    (made / "local" / "custom" / "spy.py").touch()
    (made / "job").mkdir()
    own_workspace(source, tmp_path / "run", "north")
    assert not (made / "local" / "custom").exists()
    assert (made / "job").exists()


def test_the_key_is_the_owners_alone(tmp_path: Path) -> None:
    made = own_workspace(kit(tmp_path), tmp_path / "run", "north")
    assert stat.S_IMODE((made / "startup" / "client.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "change",
    [
        {"service": {"target": "kge.example.org:8002/../x", "scheme": "http"}},
        {"service": {"target": "kge.example.org", "scheme": "http"}},
        {"service": {"target": "kge.example.org:8002", "scheme": "file"}},
        {"service": "kge.example.org:8002"},
        {"identity": ["kge.example.org"]},
        {"name": "study\n"},
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(FedkgeError, match=r"fed_client.json: expected"):
        own_workspace(kit(tmp_path, **change), tmp_path / "run", "north")


@pytest.mark.parametrize("name", ["client.crt", "client.key", "rootCA.pem", "fed_client.json", "requests.pub"])
def test_a_file_that_is_missing_or_something_else_is_named(tmp_path: Path, name: str) -> None:
    source = kit(tmp_path)
    for content in (b"x", b"[" * 60_000, b"-----BEGIN " + bytes(70_000)):
        (source / "startup" / name).write_bytes(content)
        with pytest.raises(FedkgeError, match=name):
            own_workspace(source, tmp_path / "run", "north")
    (source / "startup" / name).unlink()
    with pytest.raises(FedkgeError, match=name):
        own_workspace(source, tmp_path / "run", "north")


def test_a_folder_that_is_no_kit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FedkgeError, match="expected a start-up kit"):
        own_workspace(tmp_path, tmp_path / "run", "north")
