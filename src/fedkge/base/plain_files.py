"""Read small files of text, JSON and TOML. Every error names the file and the place.

A reading function returns a value or raises the error class that its caller chose. It refuses pipes, devices and
folders before it could wait for them. It also refuses text that is nested too deeply, is not UTF-8 or is not valid
Unicode.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from fedkge.base.errors import FedkgeError

LARGEST_TEXT = 2**30
"""In bytes. Files of a run are far smaller, and a file is read into memory as a whole."""


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading. A folder, a pipe or a device is an OSError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_plain(Path(folder))
    Traceback (most recent call last):
    ...
    OSError: expected a plain file, got a folder
    """
    if "\0" in str(path):
        raise FileNotFoundError(f"{str(path)!r}: no file has such a name")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(f"expected a plain file, got {'a folder' if stat.S_ISDIR(mode) else 'a pipe or a device'}")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, error: type[FedkgeError], remedy: str = "") -> bytes:
    """The content of a plain file. On failure it raises `error` with the path and `remedy`."""
    try:
        with open_plain(path) as file:
            content = file.read(LARGEST_TEXT + 1)
    except FileNotFoundError as problem:
        raise error(f"{path}: no such file{_then(remedy)}") from problem
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}{_then(remedy)}") from problem
    if len(content) > LARGEST_TEXT:
        raise error(f"{path}: expected at most {LARGEST_TEXT} bytes, got more{_then(remedy)}")
    return content


def read_text(path: Path, error: type[FedkgeError], remedy: str = "") -> str:
    r"""The text of a file with LF line ends. It raises `error` with the line that is not UTF-8.

    >>> import tempfile
    >>> from fedkge.base.errors import DataError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "names.txt").write_bytes(b"one\r\ntwo\n")
    ...     read_text(Path(folder, "names.txt"), DataError)
    'one\ntwo\n'
    """
    content = read_bytes(path, error, remedy)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        got = content[problem.start : problem.start + 1]
        raise error(f"{path}:{line}: expected UTF-8 text, got the byte {got!r}{_then(remedy)}") from problem
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Invalid JSON, too deep nesting and a lone surrogate are a ValueError.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: nested too deeply
    """
    try:
        value = json.loads(text)
        if (b"\\u" if isinstance(text, bytes) else "\\u") in text:  # type: ignore[operator]
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be written to a file
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def read_json(path: Path, error: type[FedkgeError], remedy: str = "") -> Any:
    """The JSON value in a file, or `error`."""
    text = read_text(path, error, remedy)
    try:
        return parse_json(text)
    except ValueError as problem:
        raise error(f"{path}: expected JSON, got: {problem}{_then(remedy)}") from problem


def read_json_object(path: Path, error: type[FedkgeError], remedy: str = "") -> dict[str, Any]:
    """The JSON object in a file, or `error`."""
    content = read_json(path, error, remedy)
    if not isinstance(content, dict):
        raise error(f"{path}: expected a JSON object, got {type(content).__name__}{_then(remedy)}")
    return content


def read_json_lines(path: Path, error: type[FedkgeError], remedy: str = "") -> list[Any]:
    """The JSON value of each line of a file, or `error` with the line."""
    values = []
    for number, line in enumerate(read_text(path, error, remedy).removesuffix("\n").split("\n"), start=1):
        try:
            values.append(parse_json(line))
        except ValueError as problem:
            raise error(f"{path}:{number}: expected JSON, got: {problem}{_then(remedy)}") from problem
    return values


def read_toml_table(path: Path, error: type[FedkgeError], remedy: str = "") -> dict[str, Any]:
    """The keys and values of a TOML file, or `error`."""
    text = read_text(path, error, remedy).removeprefix("\ufeff")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        got = "tables or lists nested too deeply" if isinstance(problem, RecursionError) else problem
        raise error(f"{path}: expected TOML, got: {got}{_then(remedy)}") from problem


def home_expanded(path: Path) -> Path:
    """The path with `~` replaced by the home folder, if the user exists.

    >>> home_expanded(Path("~no-such-user/graph")).parts
    ('~no-such-user', 'graph')
    """
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _then(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""
