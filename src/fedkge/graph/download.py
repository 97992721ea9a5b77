"""Downloads over https: an interrupted download is resumed, checked, and put in place in one step."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeAlias, cast
from urllib.error import HTTPError, URLError
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from fedkge.base.errors import DataError, UnavailableError
from fedkge.graph.streams import text_sha256

TIMEOUT_SECONDS = 30
CHUNK_BYTES = 64 * 1024
RANGE_NOT_SATISFIABLE, PARTIAL_CONTENT = 416, 206

Opener: TypeAlias = Callable[[Request], HTTPResponse]
Advance: TypeAlias = Callable[[int, int | None], None]
"""Called after each chunk with the number of bytes received and, if known, the total."""


def open_https(request: Request) -> HTTPResponse:
    """Send a request over verified TLS; there is no handler for plain http, not even after a redirect.

    >>> open_https(Request("http://127.0.0.1/"))
    Traceback (most recent call last):
    ...
    urllib.error.URLError: <urlopen error unknown url type: http>
    """
    director = OpenerDirector()
    for handler in (
        ProxyHandler(),
        UnknownHandler(),
        HTTPDefaultErrorHandler(),
        HTTPRedirectHandler(),
        HTTPErrorProcessor(),
        HTTPSHandler(context=ssl.create_default_context()),
    ):
        director.add_handler(handler)
    return cast(HTTPResponse, director.open(request, timeout=TIMEOUT_SECONDS))


def _no_one(_done: int, _total: int | None) -> None:
    """Nobody watches."""


def download(url: str, target: Path, sha256: str, *, opener: Opener = open_https, advance: Advance = _no_one) -> None:
    """Fetch `url` into `target`, by way of `target.part`, which a later call continues.

    Guarantees: `target` appears only with the right checksum (of its LF text), and in one step.
    A broken transfer is an UnavailableError and keeps the part; a wrong checksum is a DataError and drops it.
    """
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab"):
            pass
    except OSError as error:
        raise UnavailableError(
            f"cannot write {part} ({error.strerror}): set FEDKGE_DATA to a writable folder"
        ) from error
    _receive(url, part, opener, advance)
    got = text_sha256(part)
    if got != sha256:
        part.unlink()
        raise DataError(f"{url}: expected sha256 {sha256}, got {got}: the file was dropped; try again")
    os.replace(part, target)


@dataclass(frozen=True, slots=True)
class _Range:
    """Where the bytes of an answer belong: from `start`, up to `total` where the server says it."""

    start: int
    total: int | None


def _receive(url: str, part: Path, opener: Opener, advance: Advance) -> None:
    """Append the missing bytes to the part; start again if the server does not resume."""
    have = part.stat().st_size
    request = Request(url, headers={"User-Agent": "fedkge", "Accept-Encoding": "identity"})  # noqa: S310 (https only)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = opener(request)
    except HTTPError as error:
        error.close()
        if error.code == RANGE_NOT_SATISFIABLE and have:
            # Nothing is left to send: the checksum decides whether the part is the file.
            return
        raise UnavailableError(f"{url}: expected the file, got HTTP status {error.code} {error.reason}") from error
    except (URLError, HTTPException, OSError) as error:
        raise UnavailableError(f"{url}: cannot be reached ({_reason(error)})") from error
    with response:
        place = _range_of(response, have)
        done = _append(response, part, place, url, advance)
    if place.total is not None and done < place.total:
        raise UnavailableError(f"{url}: broke off after {done} of {place.total} bytes: try again to continue")


def _range_of(response: HTTPResponse, have: int) -> _Range:
    length = response.headers.get("Content-Length")
    resumed = response.status == PARTIAL_CONTENT and response.headers.get("Content-Range", "").startswith(
        f"bytes {have}-"
    )
    start = have if resumed else 0
    return _Range(start, start + int(length) if length and length.isdigit() else None)


def _append(response: HTTPResponse, part: Path, place: _Range, url: str, advance: Advance) -> int:
    done = place.start
    with part.open("r+b") as file:
        file.truncate(done)
        file.seek(done)
        while True:
            try:
                chunk = response.read(CHUNK_BYTES)
            except (HTTPException, OSError) as error:
                raise UnavailableError(
                    f"{url}: broke off after {done} bytes ({error}): try again to continue"
                ) from error
            if not chunk:
                break
            file.write(chunk)
            done += len(chunk)
            advance(done, place.total)
        file.flush()
        os.fsync(file.fileno())
    return done


def _reason(error: Exception) -> str:
    return str(error.reason) if isinstance(error, URLError) else str(error) or type(error).__name__
