"""Recognise the same data again without revealing it: HMAC-SHA256 under a key that stays with its owner.

A plain hash of private triples is a release with epsilon infinity: an adversary who knows all triples but one can try
the rest. So every digest of data is keyed. There are two keys. Both are files with permissions 0600, and no export or
report contains them:

- `data.key` in a run directory, made with the run. Its digest stands in config.toml; `resume` and `open_run` compare
  it, so that a run is never continued or judged on other data.
- `data.key` in the user's state folder, made once. Its digest stands in each promise of a ledger; `fedkge account`
  compares it, so that the epsilons of two runs on the same triples add up.

Guarantee: without the key, a digest tells nothing about the data (HMAC-SHA256 is a pseudo-random function). Two digests
under one key show whether their data is the same. A person with the key can test guesses about triples.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedkge.base.errors import PrivacyError, RunError
from fedkge.graph import Graph
from fedkge.store.durable_files import PARTIAL, make_folder, raw_bytes
from fedkge.store.state_folder import VARIABLE, state_folder

FILE_NAME = "data.key"
KEY_BYTES = 32
DIGEST_BYTES = 16
NAME_BYTES = 4


@dataclass(frozen=True, slots=True)
class DataKey:
    """A secret under which digests of data are made.

    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    >>> one, other = DataKey(bytes(32)), DataKey(bytes([1]) * 32)
    >>> one.digest([graph]) == one.digest([graph]), one.digest([graph]) == other.digest([graph])
    (True, False)
    """

    secret: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """A name that identifies this key and reveals nothing about it."""
        return hmac.digest(self.secret, b"fedkge name of a data key", "sha256")[:NAME_BYTES].hex()

    def digest(self, shards: Sequence[Graph]) -> str:
        """The key's name and an HMAC of all names and triples."""
        made = hmac.new(self.secret, b"fedkge data 1\n", "sha256")
        for shard in shards:
            for part in _parts(shard):
                made.update(part)
        return f"{self.name}:{made.digest()[:DIGEST_BYTES].hex()}"


def _parts(shard: Graph) -> Iterator[bytes | memoryview]:
    """All parts of a graph that training or ranking uses, with lengths, so that no two graphs give the same text."""
    for names in (shard.entities, shard.relations):
        yield f"{len(names)}\n".encode()
        for name in names:
            yield f"{len(name.encode())} {name}\n".encode()
    for triples in (shard.train, shard.valid, shard.test, shard.elsewhere):
        yield f"{len(triples)}\n".encode()
        yield raw_bytes(triples)


def key_name(digest: str) -> str:
    """The name of the key that made a digest. Empty if the digest does not contain one.

    >>> key_name("1a2b3c4d:00ff"), key_name("")
    ('1a2b3c4d', '')
    """
    return digest.partition(":")[0] if ":" in digest else ""


def site_key() -> DataKey:
    """The key of this user, from the state folder. The first call creates it."""
    path = state_folder() / FILE_NAME
    return read_key(path) if path.exists() else create_key(path)


def create_key(path: Path) -> DataKey:
    """Make a key file that only its owner can read. If another process has just made one, use that one.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     create_key(Path(folder, "data.key")) == read_key(Path(folder, "data.key"))
    True
    """
    key = DataKey(secrets.token_bytes(KEY_BYTES))
    make_folder(path.parent)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(key.secret.hex() + "\n")
            file.flush()
            os.fsync(descriptor)
        try:
            os.link(partial, path)  # atomic, and it never overwrites another key
        finally:
            partial.unlink()
    except FileExistsError:
        return read_key(path)
    except OSError as error:
        raise RunError(
            f"{path}: the key for digests of data cannot be written ({error.strerror or error}); make the folder "
            f"writable, or set {VARIABLE} to another folder"
        ) from error
    return key


def read_key(path: Path) -> DataKey:
    """Read a key file. A missing or damaged file, or one that others can read, is an error."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise RunError(
            f"{path}: missing. This key made the digest of the data. Without it nobody can check that this is the data "
            "of the run. Restore it from a copy of the run directory, or start a new run"
        ) from error
    except OSError as error:
        raise RunError(f"{path}: the key for digests of data cannot be read ({error.strerror or error})") from error
    try:
        facts, text = os.fstat(descriptor), os.read(descriptor, 4 * KEY_BYTES)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
        raise PrivacyError(
            f"{path}: expected a file that only its owner can read, got permissions {stat.S_IMODE(facts.st_mode):04o}: "
            "with this key, others can test guesses about private data; run chmod 600 on it"
        )
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise RunError(f"{path}: expected {2 * KEY_BYTES} hexadecimal digits, got something else; restore it")
    return DataKey(secret)
