"""Bytes of graph files: compressed or not, cut into blocks of whole lines, and their checksum as LF text."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from fedkge.errors import DataError

COMPRESSIONS = (".gz", ".xz", ".zst")
BLOCK_BYTES = 4 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file, the last one ended too; `first_line` counts from 1."""

    content: bytes
    first_line: int


def format_suffix(path: Path) -> str:
    """The suffix that says the format, without the compression's, in lower case.

    >>> format_suffix(Path("train.TSV.xz"))
    '.tsv'
    """
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSIONS else suffix


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, through its decompressor where the suffix is .gz, .xz or .zst.

    Guarantees: a damaged or unreadable file is a DataError that names it, also when found while reading.
    """
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: expected a readable {path.suffix} file, got: {error}") from error


def _open(path: Path) -> BinaryIO:
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        case ".xz":
            return cast(BinaryIO, lzma.open(path, "rb"))
        case ".zst":
            import pyarrow  # noqa: PLC0415 (only .zst needs it, and it takes a while to import)

            return io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"))
        case _:
            return path.open("rb")


def line_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """The file in blocks of whole lines, in bounded memory.

    A byte order mark is taken off, blank lines at the end of the file are ignored, and the last line is ended with LF.
    """
    with open_bytes(path) as stream:
        first_line, rest = 1, stream.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
        while chunk := stream.read(block_bytes):
            rest += chunk
            # Blank lines that end the block may end the file: they wait until more comes.
            filled = rest[: rest.rfind(b"\n") + 1].rstrip(b"\r\n")
            if filled:
                cut = rest.index(b"\n", len(filled)) + 1
                yield LineBlock(rest[:cut], first_line)
                first_line += rest.count(b"\n", 0, cut)
                rest = rest[cut:]
        if last := rest.rstrip(b"\r\n"):
            yield LineBlock(last + b"\n", first_line)


def decoded(block: LineBlock, path: Path) -> str:
    """The block as text with LF line ends, or a DataError that names the line that is not UTF-8."""
    try:
        text = block.content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = block.first_line + block.content.count(b"\n", 0, error.start)
        got = block.content[error.start : error.start + 1]
        raise DataError(f"{path}:{line}: expected UTF-8 text, got the byte {got!r}: save the file as UTF-8") from error
    return text.replace("\r\n", "\n")


def decoded_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number and without its end; for small files, and for those that need a look at each line."""
    for block in line_blocks(path):
        lines = decoded(block, path).split("\n")
        yield from enumerate(lines[:-1], start=block.first_line)


def text_sha256(path: Path) -> str:
    """The sha256 of the uncompressed file with CRLF made LF, so that it is the same on every platform.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     unix, windows = Path(folder, "unix.txt"), Path(folder, "windows.txt")
    ...     _ = unix.write_bytes(b"a\\n"), windows.write_bytes(b"a\\r\\n")
    ...     text_sha256(unix) == text_sha256(windows)
    True
    """
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        held = b""
        while chunk := stream.read(BLOCK_BYTES):
            chunk = held + chunk
            # A CR at the very end may be half of a CRLF.
            held = b"\r" if chunk.endswith(b"\r") else b""
            digest.update(chunk[: len(chunk) - len(held)].replace(b"\r\n", b"\n"))
        digest.update(held)
    return digest.hexdigest()
