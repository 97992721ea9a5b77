"""How data is recognised again without telling what it is: HMAC-SHA256 under a key that stays with its holder.

A plain hash of private triples is a release with epsilon infinity: an adversary who knows all other triples can try the
missing one. So every digest of data is keyed. There are two keys. Both are files with permissions 0600, and no export
and no report contains them:

- `data.key` in a run directory, made with the run. Its digest stands in config.toml; `resume` and `open_run` compare
  it, so that a run is never continued or judged on other data.
- `data.key` in the user's state folder, made once. Its digest stands in each promise of a ledger; `fedkge account`
  compares it, so that the epsilons of two runs on the same triples add up.

Guarantee: without the key, a digest tells nothing about the data (HMAC-SHA256 is a pseudo-random function). Two digests
under one key tell whether their data is the same. The holder of the key can try triples.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fedkge.base.errors import RunError
from fedkge.store.durable_files import make_folder
from fedkge.store.key_files import KeyKind, create_key_file, read_key_file
from fedkge.store.state_folder import VARIABLE, state_folder

FILE_NAME = "data.key"
KIND = KeyKind("", damaged=RunError)
DIGEST_BYTES = 16
NAME_BYTES = 4


class Content(Protocol):
    """What a digest can be made of: a graph."""

    def content(self) -> Iterable[bytes | memoryview]:
        """Everything that training or ranking looks at, with lengths: different graphs give different bytes."""
        ...


@dataclass(frozen=True, slots=True)
class DataKey:
    """A secret under which digests of data are made.

    >>> from fedkge.graph import Graph
    >>> graph = Graph.from_names("tiny", train=[("a", "r", "b")])
    >>> one, other = DataKey(bytes(32)), DataKey(bytes([1]) * 32)
    >>> one.digest([graph]) == one.digest([graph]), one.digest([graph]) == other.digest([graph])
    (True, False)
    """

    secret: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """Eight digits that differ between keys and reveal nothing about them."""
        return hmac.digest(self.secret, b"fedkge name of a data key", "sha256")[:NAME_BYTES].hex()

    def digest(self, shards: Sequence[Content]) -> str:
        """The key's name and an HMAC of all names and triples."""
        made = hmac.new(self.secret, b"fedkge data 1\n", "sha256")
        for shard in shards:
            for part in shard.content():
                made.update(part)
        return f"{self.name}:{made.digest()[:DIGEST_BYTES].hex()}"


def key_name(digest: str) -> str:
    """The name of the key that a digest was made with; blank if the digest has none.

    >>> key_name("1a2b3c4d:00ff"), key_name("")
    ('1a2b3c4d', '')
    """
    return digest.partition(":")[0] if ":" in digest else ""


def site_key() -> DataKey:
    """This user's key, from the state folder; made when it is first needed."""
    path = state_folder() / FILE_NAME
    return read_key(path) if path.exists() else create_key(path)


def create_key(path: Path) -> DataKey:
    """Make a key file; if another process has made one meanwhile, return that key.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     create_key(Path(folder, "data.key")) == read_key(Path(folder, "data.key"))
    True
    """
    make_folder(path.parent)
    try:
        return DataKey(create_key_file(path, KIND))
    except FileExistsError:
        return read_key(path)
    except OSError as error:
        raise RunError(
            f"{path}: the key for digests of data cannot be written ({error.strerror or error}); make the folder "
            f"writable, or set {VARIABLE} to another folder for the user's own files"
        ) from error


def read_key(path: Path) -> DataKey:
    """Read a key file; a missing or damaged one, and one that others can read, is an error."""
    try:
        return DataKey(read_key_file(path, KIND))
    except FileNotFoundError as error:
        raise RunError(
            f"{path}: missing. The digest of the data was made with this key; without it, nobody can check whether "
            "this is the data of the run. Restore it from a copy of the run directory, or start a new run"
        ) from error
    except OSError as error:
        raise RunError(f"{path}: the key for digests of data cannot be read ({error.strerror or error})") from error
