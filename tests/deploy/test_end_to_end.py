"""One server and three sites as real processes on loopback, with mutual TLS and the commands that a person types."""

import json
import shutil
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="a federation of processes needs fedkge[nvflare]")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from fedkge.api.training import open_run
from fedkge.deploy.gathering import gather
from fedkge.deploy.layout import Layout
from fedkge.deploy.site_settings import read_site
from fedkge.graph.datasets import load
from fedkge.graph.split import split
from tests.base.test_private_files import open_to_others
from tests.deploy.small import DEFENDED, OPEN, SEED, Parties, deployed, embedded, small_layout, spent_rounds, trained

DEMO = {"dimension": 16, "rounds": 2, "local_epochs": 1, "batch_size": 256, "record": "all"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parties]:
    """The demo graph, without a defence; a fourth, uninvited party knocks meanwhile."""
    folder = tmp_path_factory.mktemp("open")
    data = split(load("demo"), 3, "entity", SEED)
    layout = small_layout(folder, OPEN, training=DEMO, data=data)
    with Parties(layout) as parties:
        parties.start()
        parties.finish()
        yield parties


def test_without_a_defence_the_table_is_that_of_fedkge_train(demo: Parties) -> None:
    assert np.array_equal(deployed(demo.layout), trained(demo.layout))


def test_everybody_tells_what_happens(demo: Parties) -> None:
    said = demo.server.said
    for words in ("listening on port", "connected: client-0, client-1, client-2", "round", "of 2 done"):
        assert words in said
    assert "waiting for the server of try" in demo.sites["client-0"].said


def test_nobody_else_on_a_machine_can_read_what_a_party_keeps(demo: Parties) -> None:
    """The processes began with a umask of 0; NVFlare's own workspace and log lie in the run directory too."""
    for party in (demo.server, *demo.sites.values()):
        assert (party.run / "nvflare.log").exists()
        assert open_to_others(party.run) == []


def test_no_name_of_an_entity_reaches_the_server(demo: Parties) -> None:
    names = set(load("demo").entities.names)
    run = demo.layout.settings.run
    assert not names & set((run / "entities.txt").read_text(encoding="utf-8").split("\n"))
    kept = b"".join(path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file())
    assert not [name for name in names if len(name) > 12 and name.encode() in kept]


def test_with_a_defence_too_and_rows_of_one_owner_stay_at_home(tmp_path: Path) -> None:
    layout = small_layout(
        tmp_path, DEFENDED, owners=2, training={**DEFENDED, "rounds": 3, "record": "all"}, record="all"
    )
    with Parties(layout) as parties:
        parties.start()
        parties.finish()
    assert np.array_equal(deployed(layout), embedded(layout))
    for name, path in layout.sites.items():
        assert spent_rounds(path.parent / "run", name) == [1, 2, 3]
        assert "epsilon spent" in parties.sites[name].said
    whole = gather(layout.settings, [read_site(path) for path in layout.sites.values()], tmp_path / "everything")
    run = open_run(whole)
    assert run.evaluate("test")
    assert run.ledger is not None
    assert all(0 < spent <= 8.0 for spent in run.epsilon().values())


def test_a_certificate_of_another_authority_or_an_expired_one_or_none_does_not_get_in(tmp_path: Path) -> None:
    """Another authority signs a certificate for the same name; the server's TLS refuses the hand-shake."""
    layout = small_layout(tmp_path / "ours")
    other = small_layout(tmp_path / "theirs")
    stolen = layout.settings.kits / "client-2" / "kit" / "startup"
    for file in ("client.crt", "client.key"):
        shutil.copy(other.settings.kits / "client-2" / "kit" / "startup" / file, stolen / file)
    with Parties(layout) as parties:
        parties.start()
        parties.wait(lambda: "connected: client-0, client-1; waiting for client-2" in parties.server.said)
        assert not _shakes_hands(layout.settings.port, other.settings.kits / "client-2" / "kit" / "startup")
        assert not _shakes_hands(layout.settings.port, _expired(layout, tmp_path))
        assert not _shakes_hands(layout.settings.port, None)
        assert _shakes_hands(layout.settings.port, layout.settings.kits / "client-0" / "kit" / "startup")
        parties.wait(lambda: parties.sites["client-2"].run.joinpath("nvflare.log").stat().st_size > 0)
        assert "connected: client-0, client-1, client-2" not in parties.server.said
    assert not (layout.settings.run / "checkpoints" / "server.safetensors").exists()


def _expired(layout: Layout, folder: Path) -> Path:
    """A certificate that the federation's own authority has signed for client-2, until yesterday."""
    state = layout.settings.kits / "authority" / layout.settings.name / "state" / "cert.json"
    authority = json.loads(state.read_text(encoding="utf-8"))
    root = x509.load_pem_x509_certificate(authority["root_cert"].encode())
    signer = serialization.load_pem_private_key(authority["root_pri_key"].encode(), None)
    key = rsa.generate_private_key(65537, 2048)
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().issuer_name(root.subject).public_key(key.public_key())
    builder = builder.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client-2")]))
    builder = builder.not_valid_before(now - timedelta(days=9)).not_valid_after(now - timedelta(days=1))
    made = builder.serial_number(x509.random_serial_number()).sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "client.crt").write_bytes(made.public_bytes(pem))
    (folder / "client.key").write_bytes(key.private_bytes(pem, plain, serialization.NoEncryption()))
    return folder


def _shakes_hands(port: int, startup: Path | None) -> bool:
    """Whether the server talks to whoever holds this certificate (none: to somebody without)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if startup is not None:
        context.load_cert_chain(startup / "client.crt", startup / "client.key")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, context.wrap_socket(plain) as secure:
            secure.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return bool(secure.recv(1))
    except (ssl.SSLError, ConnectionError):
        return False
