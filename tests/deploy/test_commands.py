"""The commands of a federation between machines, as far as one process shows them."""

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("nvflare", reason="start-up kits need fedkge[nvflare]")

from fedkge.base.errors import ConfigurationError, DataError, UnavailableError
from fedkge.cli.app import app
from fedkge.defences import with_defence
from fedkge.deploy.federation_file import FederationFile, read_federation
from fedkge.deploy.provision import CONTROLLER, EXECUTOR
from fedkge.deploy.request_keys import fingerprint, read_public_key, read_signing_key
from fedkge.deploy.signatures import public_key
from fedkge.deploy.site_settings import read_site
from tests.base.test_private_files import open_to_others


def call(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def initialised(folder: Path) -> Path:
    code, said = call("federation", "init", folder, "--name", "study", "--site", "north", "--site", "south")
    assert code == 0, said
    return folder


def test_init_writes_settings_that_can_be_read_and_kits(tmp_path: Path) -> None:
    folder = initialised(tmp_path / "study")
    settings = read_federation(folder / "federation.toml")
    assert settings.sites == ("north", "south")
    assert settings.configuration.model.dimension == with_defence({"epsilon": 8.0})["dimension"]
    for site in settings.sites:
        own = read_site(settings.kits / site / "site.toml")
        assert (own.name, own.federation) == (site, "study")
        assert own.kit == settings.kits / site / "kit"
        assert (own.kit / "startup" / "client.crt").exists()
        resources = json.loads((own.kit / "local" / "resources.json").read_text(encoding="utf-8"))
        assert resources["class_allow_list"] == [EXECUTOR]
        assert resources["allow_log_streaming"] is False
        policy = json.loads((own.kit / "local" / "authorization.json").read_text(encoding="utf-8"))
        assert policy["permissions"]["lead"]["byoc"] == "none"
        assert policy["permissions"]["lead"]["shell_commands"] == "none"


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    folder = initialised(tmp_path / "study")
    assert call("federation", "key", tmp_path / "consortium.key")[0] == 0
    assert stat.S_IMODE((tmp_path / "consortium.key").stat().st_mode) == 0o600
    for place in ("kits/authority", "kits/server/startup", "kits/north/kit/startup"):
        assert stat.S_IMODE((folder / place).stat().st_mode) == 0o700


def test_kits_are_open_to_nobody_else_also_in_a_folder_that_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "study" / "kits").mkdir(parents=True)
        folder = initialised(tmp_path / "study")
    finally:
        os.umask(before)
    found = {path for path in open_to_others(folder) if not path.endswith(".sh")}  # NVFlare's scripts, the same for all
    assert found == {str(folder), str(folder / "kits")}, "these two were there before"


@pytest.mark.parametrize("sites", [["north", "Server"], ["coordinator"], ["authority"], ["example"], ["a", "A"]])
def test_no_site_shares_a_folder_with_the_server_or_another_site(sites: list[str]) -> None:
    """The folder of a site is sent to it; that of the server holds the key that signs requests."""
    with pytest.raises(ValueError, match="name"):
        FederationFile(server="example", sites=tuple(sites))


def test_init_takes_a_file_that_is_there_and_does_not_overwrite_kits(tmp_path: Path) -> None:
    folder = initialised(tmp_path / "study")
    before = (folder / "federation.toml").read_bytes()
    code, said = call("federation", "init", folder)
    assert code == 6
    assert "new or empty folder" in said
    assert (folder / "federation.toml").read_bytes() == before


def test_init_without_sites_says_what_to_do(tmp_path: Path) -> None:
    code, said = call("federation", "init", tmp_path)
    assert code == 4
    assert "--site" in said


def test_a_federation_of_one_is_refused_at_once(tmp_path: Path) -> None:
    """Rows of one owner stay at home: one site would wait for ever, or share nothing."""
    code, said = call("federation", "try", "--clients", 1, "--out", tmp_path / "try")
    assert code == ConfigurationError.exit_code
    assert "at least 2 sites" in said
    assert not (tmp_path / "try").exists()
    code, said = call("federation", "init", tmp_path / "init", "--site", "north")
    assert code == ConfigurationError.exit_code
    assert "at least 2 sites" in said.replace("\n", " ")
    assert not (tmp_path / "init").exists()


def test_kits_pin_the_key_that_signs_requests_and_the_sites_get_no_secret(tmp_path: Path) -> None:
    folder = initialised(tmp_path / "study")
    kits = folder / "kits"
    secret = kits / "server" / "startup" / "requests.key"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    pinned = {read_public_key(kits / site / "kit" / "startup") for site in ("north", "south")}
    assert pinned == {public_key(read_signing_key(secret.parent))}
    digits = secret.read_text(encoding="ascii").split()[1]
    holders = [path for path in kits.rglob("*") if path.is_file() and digits in path.read_text(errors="ignore")]
    assert holders == [secret]


def test_a_kit_from_before_requests_were_signed_says_what_to_do(tmp_path: Path) -> None:
    folder = initialised(tmp_path / "study")
    call("federation", "key", folder / "kits" / "north" / "consortium.key")
    (folder / "kits" / "north" / "graph.tsv").write_text("a\tr\tb\n", encoding="utf-8")
    (folder / "kits" / "north" / "kit" / "startup" / "requests.pub").unlink()
    (folder / "kits" / "server" / "startup" / "requests.key").unlink()
    for command in (("client", folder / "kits" / "north" / "site.toml"), ("server", folder / "federation.toml")):
        code, said = call(*command)
        assert code == UnavailableError.exit_code
        assert "fedkge federation init" in said.replace("\n", " ")


def test_a_signing_key_for_an_nvflare_that_runs_is_made_once(tmp_path: Path) -> None:
    code, said = call("federation", "signing-key", tmp_path / "keys")
    assert code == 0
    assert fingerprint(public_key(read_signing_key(tmp_path / "keys"))) in said
    before = read_public_key(tmp_path / "keys")
    assert call("federation", "signing-key", tmp_path / "keys")[0] == ConfigurationError.exit_code
    assert read_public_key(tmp_path / "keys") == before


def test_check_and_init_print_the_same_fingerprint(tmp_path: Path) -> None:
    """The site's people compare it with the coordinator's by telephone."""
    code, said = call("federation", "init", tmp_path, "--site", "north", "--site", "south", "--json")
    assert code == 0
    made = json.loads(said)["requests"]
    north = tmp_path / "kits" / "north"
    call("federation", "key", north / "consortium.key")
    (north / "graph.tsv").write_text("a\tr\tb\nb\tr\tc\n", encoding="utf-8")
    code, said = call("federation", "check", north / "site.toml", "--json")
    assert code == 0, said
    assert json.loads(said)["requests"] == made
    code, said = call("federation", "check", north / "site.toml")
    assert made[:8] in said
    (north / "kit" / "startup" / "requests.pub").unlink()
    code, said = call("federation", "check", north / "site.toml", "--json")
    assert code == 0
    assert json.loads(said)["requests"] is None


def test_a_job_holds_two_class_names_and_no_code(tmp_path: Path) -> None:
    folder = initialised(tmp_path / "study")
    assert call("federation", "job", folder / "federation.toml", "--out", tmp_path / "job")[0] == 0
    files = sorted(path.relative_to(tmp_path / "job").as_posix() for path in (tmp_path / "job").rglob("*.*"))
    assert files == ["app/config/config_fed_client.json", "app/config/config_fed_server.json", "meta.json"]
    text = "".join((tmp_path / "job" / file).read_text(encoding="utf-8") for file in files)
    assert CONTROLLER in text
    assert EXECUTOR in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('sites = ["a", "a"]', "each named once"),
        ('sites = ["a b"]', "letters, digits and hyphens"),
        ("sites = []", "at least one site"),
        ('sites = ["a"]', "minimum.owners: .*at most the number of sites, 1"),
        ('sites = ["a", "b"]\nminimum-owners = 3', "at most the number of sites, 2"),
        ('sites = ["a", "b"]\nsilence-seconds = 5', "silence-seconds: .*greater than or equal to 20"),
        ('sites = ["a", "b"]\nroundseconds = 3', "roundseconds"),
        ('sites = ["a", "b"]\nwire = "float8"', "wire"),
        ('sites = ["a", "b"]\n[training]\nepsilom = 3', "did you mean epsilon"),
        ("sites = [", "expected TOML"),
    ],
)
def test_a_wrong_federation_toml_is_refused_in_plain_words(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "federation.toml").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        read_federation(tmp_path / "federation.toml")


def test_try_never_writes_into_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    code, said = call("federation", "try", "--out", tmp_path)
    assert code == 6
    assert "new or empty" in said


@pytest.mark.parametrize("missing", ["consortium.key", "graph.tsv"])
def test_a_site_without_its_files_says_so_before_it_connects(tmp_path: Path, missing: str) -> None:
    folder = initialised(tmp_path / "study") / "kits" / "north"
    call("federation", "key", folder / "consortium.key")
    (folder / "graph.tsv").write_text("a\tr\tb\n", encoding="utf-8")
    (folder / missing).unlink()
    code, said = call("client", folder / "site.toml")
    assert code in (ConfigurationError.exit_code, DataError.exit_code)
    assert missing in said.replace("\n", "")
    assert not (folder / "run" / "nvflare.log").exists()


@pytest.mark.parametrize("verb", ["server", "client"])
def test_a_missing_file_is_an_error_that_says_so(tmp_path: Path, verb: str) -> None:
    code, said = call(verb, tmp_path / "none.toml")
    assert code == 4
    assert "no such file" in said
