"""The secrets of a site: files that only their owner can read, with random bytes that nobody chose.

A consortium key is made once, by one site, and carried to the others by hand or by a means that the server cannot read.
What is made from it carries the purpose and the federation's name, so that nothing of one federation can be matched
with another, even under the same key.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from fedkge.base.errors import ConfigurationError, DataError

KEY_BYTES = 32
CONSORTIUM = "fedkge-consortium-key-1"
EXPONENT = "fedkge-joint-exponent-1"
"""First word of a key file: what it is for, and the version of its format."""

MOST_KEY_FILE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Key:
    """A secret; printing it shows nothing of it.

    >>> Key(bytes(32))
    Key()
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ConfigurationError(f"expected a key of {KEY_BYTES} bytes, got {len(self.secret)}")

    @classmethod
    def fresh(cls) -> Key:
        """A new key from the operating system; the only way to make one, because a chosen one can be guessed."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def derive(self, purpose: str, federation: str) -> Key:
        """The key for one purpose in one federation; neither tells anything about another.

        >>> Key(bytes(32)).derive("entities", "a") == Key(bytes(32)).derive("entities", "b")
        False
        """
        return Key(self.digest(_fields("fedkge derive 1", purpose, federation)))

    def digest(self, message: bytes) -> bytes:
        """HMAC-SHA256 of a message."""
        return hmac.digest(self.secret, message, "sha256")


def _fields(*texts: str) -> bytes:
    """Texts in one message, each with its length, so that no two lists of texts give the same one."""
    return b"".join(len(data).to_bytes(8, "big") + data for data in (text.encode() for text in texts))


def create_key(path: Path, kind: str = CONSORTIUM) -> Key:
    """Make a key file with permissions 0600; a file that is there already is never overwritten.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     create_key(Path(folder, "consortium.key")) == read_key(Path(folder, "consortium.key"))
    True
    """
    key = Key.fresh()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigurationError(f"{path}: a file is there already and stays; name another, or remove it") from error
    except OSError as error:
        raise ConfigurationError(f"{path}: the key cannot be written ({error.strerror or error})") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(descriptor, 0o600)
        file.write(f"{kind} {key.secret.hex()}\n")
        file.flush()
        os.fsync(descriptor)
    return key


def read_key(path: Path, kind: str = CONSORTIUM) -> Key:
    """Read a key file; one that others may read, that is no plain file, or that holds something else is refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{path}: expected a key file, found none; get it from the site that made it"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path}: the key cannot be read ({error.strerror or error})") from error
    try:
        _check_permissions(path, os.fstat(descriptor))
        words = os.read(descriptor, MOST_KEY_FILE_BYTES).split()
    finally:
        os.close(descriptor)
    if len(words) != 2 or words[0].decode("ascii", "replace") != kind:
        raise DataError(
            f"{path}: expected the words {kind!r} and {2 * KEY_BYTES} hexadecimal digits, got something else"
        )
    try:
        secret = bytes.fromhex(words[1].decode("ascii"))
    except ValueError as error:
        raise DataError(f"{path}: expected {2 * KEY_BYTES} hexadecimal digits after {kind!r}") from error
    if len(secret) != KEY_BYTES or len(set(secret)) == 1:
        raise DataError(
            f"{path}: expected a random key of {KEY_BYTES} bytes, got {len(secret)} bytes, {len(set(secret))} of them "
            "different; a key must be made by fedkge, never typed"
        )
    return Key(secret)


def _check_permissions(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigurationError(f"{path}: expected a plain file, got something else")
    if hasattr(os, "geteuid") and facts.st_uid not in (os.geteuid(), 0):
        raise ConfigurationError(f"{path}: expected a key file of this user, got one of user {facts.st_uid}")
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o077:
        raise ConfigurationError(
            f"{path}: expected a file that only its owner can read, got permissions {mode:04o}: run chmod 600 on it; "
            "if somebody else may have read it, make a new key"
        )
