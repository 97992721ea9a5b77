"""Bytes of graph files: compressed or not, cut into blocks of whole lines, and their checksum as LF text."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from fedkge.base.errors import DataError
from fedkge.base.plain_files import open_plain
from fedkge.base.short_repr import short_repr
from fedkge.graph.limits import InputLimits, input_limits

COMPRESSIONS = (".gz", ".xz", ".zst")
BLOCK_BYTES = 4 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@short_repr()
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

    Guarantees: a damaged or unreadable file is a DataError that names it, also when found while reading; so is one
    that is no plain file (a pipe would wait for ever), and one that decompresses to more than `InputLimits` allow.
    """
    limits = input_limits()
    try:
        with open_plain(path) as file, _decompressed(file, path) as stream:
            compressed = path.suffix.lower() in COMPRESSIONS
            yield cast(BinaryIO, _Measured(stream, path, file, limits)) if compressed else stream
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: expected a readable {path.suffix} file, got: {error}") from error


class _Measured:
    """A decompressor's output, counted; it never gives more than the limits allow."""

    def __init__(self, stream: BinaryIO, path: Path, file: BinaryIO, limits: InputLimits) -> None:
        self._stream, self._path, self._limits = stream, path, limits
        self._file_bytes = os.fstat(file.fileno()).st_size
        self._produced = 0

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        """At most `size` bytes; one block where a caller asks for everything."""
        chunk = self._stream.read(size if 0 <= size <= BLOCK_BYTES else BLOCK_BYTES)
        self._produced += len(chunk)
        self._limits.check_decompressed(self._path, self._file_bytes, self._produced)
        return chunk


def _decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.open(file, "rb"))
        case ".xz":
            return cast(BinaryIO, lzma.open(file, "rb"))
        case ".zst":
            import pyarrow  # noqa: PLC0415 (only .zst needs it, and it takes a while to import)

            return io.BufferedReader(pyarrow.input_stream(file, compression="zstd"))
        case _:
            return file


def line_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """The file in blocks of whole lines, in bounded memory and in time that grows with its size alone.

    A byte order mark is taken off, blank lines at the end of the file are ignored, and the last line is ended with LF.
    A line that is longer than `InputLimits` allow is an error.
    """
    limits = input_limits()
    with open_bytes(path) as stream:
        first_line, held = 1, _Held()
        chunk = stream.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK) + stream.read(block_bytes)
        while chunk:
            cut = held.whole_lines(chunk)
            if cut:
                content = held.take(chunk[:cut])
                _check_lengths(content, first_line, limits, path)
                yield LineBlock(content, first_line)
                first_line += content.count(b"\n")
            held.add(chunk[cut:])
            if held.size > limits.longest_line:
                raise limits.line_too_long(path, first_line)
            chunk = stream.read(block_bytes)
        if last := held.take().rstrip(b"\r\n"):
            _check_lengths(last, first_line, limits, path)
            yield LineBlock(last + b"\n", first_line)


class _Held:
    """What was read and not yet given out: blank lines, which may end the file, then a line that has not ended.

    Pieces are joined once, when they are given out: joining at every chunk would take time that grows with the square
    of a line's length.
    """

    def __init__(self) -> None:
        self.size, self._pieces, self._begun = 0, list[bytes](), False

    def add(self, piece: bytes) -> None:
        """Hold more: blank lines and the beginning of a line."""
        if piece:
            self._pieces.append(piece)
            self.size += len(piece)
            self._begun = self._begun or bool(piece.strip(b"\r\n"))

    def whole_lines(self, chunk: bytes) -> int:
        """How much of `chunk` ends the last line that has something in it; 0 where no such line ends here."""
        filled = len(chunk[: chunk.rfind(b"\n") + 1].rstrip(b"\r\n"))
        if not filled and not self._begun:
            return 0
        # What is held beyond blank lines has no line end yet, so the next one is in the chunk, if anywhere.
        return chunk.find(b"\n", filled) + 1

    def take(self, last: bytes = b"") -> bytes:
        """Everything held, and `last`; nothing is held afterwards."""
        content = b"".join([*self._pieces, last])
        self.size, self._pieces, self._begun = 0, [], False
        return content


def _check_lengths(content: bytes, first_line: int, limits: InputLimits, path: Path) -> None:
    if len(content) <= limits.longest_line:
        return
    for number, line in enumerate(content.split(b"\n"), start=first_line):
        if len(line) > limits.longest_line:
            raise limits.line_too_long(path, number)


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
