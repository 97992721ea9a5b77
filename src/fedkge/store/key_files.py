"""Files that hold one secret key: made whole, for their owner alone, and read only if nobody else could read them.

A key file has one line: 32 random bytes in hexadecimal digits, and before them a word that says what the key is for and
which version of the format this is (`data.key`, which never leaves its folder, has no word). Every secret key that
fedkge stores is such a file: `data.key` of a run and of a user, a consortium's key, a site's exponent, the server's
signing key.

Guarantee: a file is made with permissions 0600 under a temporary name, synced, and then linked to its name, so that it
is whole or absent and never replaces another key. Reading refuses what is no plain file, what belongs to another user,
what others can read or write, and what does not look random. No error shows any part of the content.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from fedkge.base.errors import DataError, FedkgeError, PrivacyError
from fedkge.base.private_files import FILE_MODE
from fedkge.store.durable_files import PARTIAL, sync_folder

KEY_BYTES = 32
MOST_BYTES = 1024


@dataclass(frozen=True, slots=True)
class KeyKind:
    """What a key is for: the first word of its file (blank for none), and the error that a damaged file raises."""

    word: str
    damaged: type[FedkgeError] = DataError


def create_key_file(path: Path, kind: KeyKind) -> bytes:
    """Make a key from the operating system's randomness and write it to a new file.

    A FileExistsError if `path` is there already, another OSError if it cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> kind = KeyKind("example-key-1")
    >>> with TemporaryDirectory() as folder:
    ...     create_key_file(Path(folder, "a.key"), kind) == read_key_file(Path(folder, "a.key"), kind)
    True
    """
    secret = secrets.token_bytes(KEY_BYTES)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            os.fchmod(descriptor, FILE_MODE)
            file.write(f"{kind.word} {secret.hex()}".lstrip() + "\n")
            file.flush()
            os.fsync(descriptor)
        os.link(partial, path)
    finally:
        partial.unlink()
    sync_folder(path.parent)
    return secret


def read_key_file(path: Path, kind: KeyKind) -> bytes:
    """The key in a file; an OSError if it cannot be opened, a FedkgeError if it is not safe or not a key of this kind.

    >>> read_key_file(Path("/dev/null"), KeyKind("example-key-1"))
    Traceback (most recent call last):
    fedkge.base.errors.PrivacyError: /dev/null: expected a plain file with a key, got something else
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _check_permissions(path, os.fstat(descriptor))
        words = os.read(descriptor, MOST_BYTES).split()
    finally:
        os.close(descriptor)
    first = f"the word {kind.word!r} and " if kind.word else ""
    expected = f"{path}: expected {first}{2 * KEY_BYTES} hexadecimal digits"
    if [word.decode("ascii", "replace") for word in words[:-1]] != kind.word.split():
        raise kind.damaged(f"{expected}, got something else; restore the file from a copy")
    try:
        secret = bytes.fromhex(b"".join(words[-1:]).decode("ascii"))
    except ValueError as error:
        raise kind.damaged(f"{expected}, got other characters; restore the file from a copy") from error
    if len(secret) != KEY_BYTES or len(set(secret)) == 1:
        raise kind.damaged(
            f"{expected} of a random key, got {len(secret)} bytes with {len(set(secret))} different values; "
            "let fedkge make the key, do not type it"
        )
    return secret


def _check_permissions(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise PrivacyError(f"{path}: expected a plain file with a key, got something else")
    if hasattr(os, "geteuid") and facts.st_uid not in (os.geteuid(), 0):
        raise PrivacyError(
            f"{path}: expected a key file of this user, got one of user {facts.st_uid}; run chown on it if it is yours"
        )
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o077:
        raise PrivacyError(
            f"{path}: expected a file that only its owner can read, got permissions {mode:04o}: run chmod 600 on it; "
            "if somebody else may have read it, make a new key"
        )
