"""The secret keys of a site.

One site makes the consortium's key, once, and sends it to the others over a channel that the server cannot read. Every
derived key depends on its purpose and on the federation's name. So nothing can be matched between two federations, even
under the same consortium key.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from fedkge.base.errors import ConfigurationError
from fedkge.store.key_files import KEY_BYTES, KeyKind, create_key_file, read_key_file

CONSORTIUM = KeyKind("fedkge-consortium-key-1")
EXPONENT = KeyKind("fedkge-joint-exponent-1")


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
        """A new key from the operating system's randomness; a key that a person chose could be guessed."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def derive(self, purpose: str, federation: str) -> Key:
        """The key for one purpose in one federation; a derived key reveals nothing about another.

        >>> Key(bytes(32)).derive("entities", "a") == Key(bytes(32)).derive("entities", "b")
        False
        """
        return Key(self.digest(_fields("fedkge derive 1", purpose, federation)))

    def digest(self, message: bytes) -> bytes:
        """HMAC-SHA256 of a message."""
        return hmac.digest(self.secret, message, "sha256")


def _fields(*texts: str) -> bytes:
    """All texts in one message, each with its length: different lists of texts give different messages."""
    return b"".join(len(data).to_bytes(8, "big") + data for data in (text.encode() for text in texts))


def create_key(path: Path, kind: KeyKind = CONSORTIUM) -> Key:
    """Make a key file with permissions 0600; a file that is there already is never overwritten.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     create_key(Path(folder, "consortium.key")) == read_key(Path(folder, "consortium.key"))
    True
    """
    try:
        return Key(create_key_file(path, kind))
    except FileExistsError as error:
        raise ConfigurationError(
            f"{path}: expected no file, got one, and it stays; choose another name, or remove it"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path}: the key cannot be written ({error.strerror or error})") from error


def read_key(path: Path, kind: KeyKind = CONSORTIUM) -> Key:
    """Read a key file; `store.key_files` says what is refused."""
    try:
        return Key(read_key_file(path, kind))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{path}: expected a key file, found none; get it from the site that made it"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path}: the key cannot be read ({error.strerror or error})") from error
