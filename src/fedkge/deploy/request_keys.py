"""The key files for signed requests: the server's signing key, and the public key with which sites check signatures.

`fedkge federation init` makes both. The signing key stays in the server's start-up kit, readable by its owner alone.
Each site's kit pins the public key. Its fingerprint is short enough to compare by telephone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from fedkge.base.errors import DataError, UnavailableError
from fedkge.deploy.keys import Key, create_key, read_key
from fedkge.store.durable_files import write_atomically
from fedkge.store.key_files import KEY_BYTES, KeyKind

SIGNING = KeyKind("fedkge-request-signing-key-1")
PUBLIC = "fedkge-request-public-key-1"
"""First word of the public key file: its purpose and the version of its format."""

SIGNING_FILE, PUBLIC_FILE = "requests.key", "requests.pub"
AGAIN = "the kits were made by a fedkge that did not sign requests: make new ones with `fedkge federation init`"
_MOST_BYTES = 256


def create_request_keys(server: Path, sites: Iterable[Path]) -> None:
    """Make the signing key in the server's `startup` folder, and its public key there and in the sites' folders."""
    from fedkge.deploy.signatures import public_key  # noqa: PLC0415 (PyNaCl is an extra)

    public = public_key(create_key(server / SIGNING_FILE, SIGNING))
    for folder in (server, *sites):
        write_atomically(folder / PUBLIC_FILE, public_text(public).encode("ascii"))


def public_text(public: bytes) -> str:
    """The content of the file that pins a public key.

    >>> public_text(bytes(32)).split()[0]
    'fedkge-request-public-key-1'
    """
    return f"{PUBLIC} {public.hex()}\n"


def read_signing_key(startup: Path) -> Key:
    """The server's signing key in the `startup` folder of its kit."""
    path = startup / SIGNING_FILE
    if not path.exists():
        raise UnavailableError(f"{path}: the key that signs the server's requests is missing; {AGAIN}")
    return read_key(path, SIGNING)


def read_public_key(startup: Path) -> bytes:
    """The server's public key, as the `startup` folder of a kit pins it."""
    path = startup / PUBLIC_FILE
    try:
        with path.open("rb") as file:
            words = file.read(_MOST_BYTES).split()
    except OSError as error:
        reason = error.strerror or error
        raise UnavailableError(f"{path}: the server's public key is missing ({reason}); {AGAIN}") from error
    try:
        kind, public = words[0].decode("ascii"), bytes.fromhex(words[1].decode("ascii"))
    except (IndexError, ValueError) as error:
        raise DataError(f"{path}: expected the word {PUBLIC!r} and {2 * KEY_BYTES} hexadecimal digits") from error
    if len(words) != 2 or kind != PUBLIC or len(public) != KEY_BYTES:
        raise DataError(f"{path}: expected the word {PUBLIC!r} and {2 * KEY_BYTES} hexadecimal digits")
    return public


def fingerprint(public: bytes) -> str:
    """A public key in four groups that two people can compare by telephone (128 bits of its SHA-256).

    >>> fingerprint(bytes(32))
    '66687aad f862bd77 6c8fc18b 8e9f8e20'
    """
    digits = hashlib.sha256(public).hexdigest()[:32]
    return " ".join(digits[start : start + 8] for start in range(0, 32, 8))
