"""Key files: nobody else may read them, and nothing that is not a key passes for one."""

import os
import stat
from pathlib import Path

import pytest

from fedkge.base.errors import ConfigurationError, DataError, FedkgeError, PrivacyError
from fedkge.deploy.keys import CONSORTIUM, EXPONENT, Key, create_key, read_key


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="ascii")
    path.chmod(mode)
    return path


def test_a_new_key_is_read_back_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        key = create_key(tmp_path / "consortium.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "consortium.key").stat().st_mode) == 0o600
    assert read_key(tmp_path / "consortium.key") == key
    assert key != Key.fresh()


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    key = create_key(tmp_path / "k")
    with pytest.raises(ConfigurationError, match="expected no file, got one"):
        create_key(tmp_path / "k")
    assert read_key(tmp_path / "k") == key


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o620])
def test_a_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    create_key(tmp_path / "k")
    (tmp_path / "k").chmod(mode)
    with pytest.raises(PrivacyError, match=f"permissions {mode:04o}: run chmod 600"):
        read_key(tmp_path / "k")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        f"{CONSORTIUM.word}",
        f"{CONSORTIUM.word} correct horse battery staple",
        f"{CONSORTIUM.word} " + "ab" * 31,
        f"{CONSORTIUM.word} " + "ab" * 33,
        f"{CONSORTIUM.word} " + "zz" * 32,
        f"{CONSORTIUM.word} " + "00" * 32,
        f"{EXPONENT.word} " + "0123456789abcdef" * 4,
        "x" * 5000,
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError) as refused:
        read_key(write(tmp_path / "k", text))
    assert not any(len(word) > 30 and word in str(refused.value) for word in text.split())


def test_folders_pipes_and_missing_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    for name in ("pipe", "folder", "missing"):
        with pytest.raises(FedkgeError):
            read_key(tmp_path / name)


def test_a_key_does_not_show_itself() -> None:
    key = Key.fresh()
    assert key.secret.hex() not in f"{key} {key!r} {[key]}"
    assert repr(key.secret) not in repr(key)


def test_derived_keys_differ_by_purpose_and_federation() -> None:
    key = Key.fresh()
    derived = {key.derive(purpose, name).secret for purpose in ("a", "ab", "") for name in ("b", "", "ab")}
    assert len(derived) == 9
    assert key.secret not in derived
