"""Work and memory that a file may ask for: linear in its size, and bounded by limits that the user can raise."""

from __future__ import annotations

import gzip
import lzma
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph import limits, streams
from fedkge.graph.datasets import load
from fedkge.graph.folders import read_path
from fedkge.graph.limits import InputLimits, input_limits
from fedkge.graph.streams import LineBlock, line_blocks, open_bytes, text_sha256

MEGABYTE = 2**20


def compressed(path: Path, content: bytes, times: int) -> Path:
    """`content`, `times` times over, as the suffix says."""
    if path.suffix == ".zst":
        with path.open("wb") as file, pyarrow.output_stream(file, compression="zstd") as stream:
            for _ in range(times):
                stream.write(content)
        return path
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wb") as file:
        for _ in range(times):
            file.write(content)
    return path


def plain_line_blocks(content: bytes, block_bytes: int) -> Iterator[LineBlock]:
    """The plain twin: everything that is held is looked at again with each chunk."""
    begin, first_line, rest = min(len(content), 3 + block_bytes), 1, b""
    chunks = [content[:begin], *(content[at : at + block_bytes] for at in range(begin, len(content), block_bytes))]
    for chunk in chunks:
        rest += chunk
        filled = rest[: rest.rfind(b"\n") + 1].rstrip(b"\r\n")
        if filled:
            cut = rest.index(b"\n", len(filled)) + 1
            yield LineBlock(rest[:cut], first_line)
            first_line += rest.count(b"\n", 0, cut)
            rest = rest[cut:]
    if last := rest.rstrip(b"\r\n"):
        yield LineBlock(last + b"\n", first_line)


@given(content=st.text("ab\t\n\r", max_size=80).map(str.encode), block_bytes=st.integers(1, 12))
def test_blocks_are_those_of_the_plain_twin(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("twin") / "a.txt"
    path.write_bytes(content)
    assert list(line_blocks(path, block_bytes)) == list(plain_line_blocks(content, block_bytes))


@pytest.mark.parametrize("byte", [b"\n", b"\r", b"x"])
def test_what_is_held_is_joined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, byte: bytes) -> None:
    """Bytes that are copied to make blocks, as a count: as many as the file has, however long its lines are."""
    joined = []
    take = streams._Held.take

    def counted(held: streams._Held, last: bytes = b"") -> bytes:
        content = take(held, last)
        joined.append(len(content))
        return content

    monkeypatch.setattr(streams._Held, "take", counted)
    monkeypatch.setenv(limits.LONGEST_LINE, str(2**30))
    path = tmp_path / "a.txt"
    path.write_bytes(byte * MEGABYTE + b"a\tr\tb\n")
    total = sum(len(block.content) for block in line_blocks(path, block_bytes=1024))
    assert total == sum(joined) == MEGABYTE + 6


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("content", [b"\n" * MEGABYTE, b"x" * MEGABYTE, b"a\tr\tb\n" * (MEGABYTE // 6)])
def test_a_bomb_is_refused_before_it_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, content: bytes
) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES", MEGABYTE)
    monkeypatch.setenv(limits.LONGEST_LINE, str(2**30))
    monkeypatch.setattr(streams, "BLOCK_BYTES", MEGABYTE // 4)
    read = [0]
    measured = streams._Measured.read

    def counted(stream: streams._Measured, size: int = -1) -> bytes:
        chunk = measured(stream, size)
        read[0] += len(chunk)
        return chunk

    monkeypatch.setattr(streams._Measured, "read", counted)
    path = compressed(tmp_path / f"bomb.tsv{suffix}", content, 8)
    allowed = input_limits().decompressed(path.stat().st_size)
    assert allowed < 6 * MEGABYTE
    with pytest.raises(DataError, match="FEDKGE_LARGEST_EXPANSION"):
        read_path(path)
    assert read[0] <= allowed
    monkeypatch.setenv(limits.LARGEST_EXPANSION, "1000000")
    with open_bytes(path) as stream:
        assert sum(len(chunk) for chunk in iter(stream.read, b"")) == 8 * len(content)
    monkeypatch.setenv(limits.LARGEST_INPUT, str(3 * MEGABYTE))
    with pytest.raises(DataError, match="FEDKGE_LARGEST_INPUT"):
        text_sha256(path)


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES", 2 * MEGABYTE)
    names = pyarrow.array(["x" * 100] * 300_000)
    path = tmp_path / "bomb.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"head": names, "relation": names, "tail": names}), path)
    with pytest.raises(DataError, match=r"bomb\.parquet: .*FEDKGE_LARGEST_EXPANSION"):
        read_path(path)


def test_a_parquet_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """One long name, 4,000 times: 17 kB of file for 240 MB of names in one block."""
    once = pyarrow.array(["x" * 20_000])
    names = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 4_000, pyarrow.int32()), once)
    path = tmp_path / "bomb.parquet"
    table = pyarrow.table({"head": names, "relation": names, "tail": names})
    pyarrow.parquet.write_table(table, path, store_schema=False)
    usual = pyarrow.default_memory_pool()
    measured = pyarrow.proxy_memory_pool(usual)
    pyarrow.set_memory_pool(measured)
    try:
        with pytest.raises(DataError, match="FEDKGE_LARGEST_EXPANSION"):
            read_path(path)
    finally:
        pyarrow.set_memory_pool(usual)
    assert measured.max_memory() < 20 * MEGABYTE


def test_a_long_line_is_refused_and_the_user_may_allow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.tsv"
    path.write_bytes(b"a\tr\tb\n" + b"x" * 5000 + b"\tr\tb\n")
    monkeypatch.setenv(limits.LONGEST_LINE, "4999")
    with pytest.raises(DataError, match=r"long\.tsv:2: .*4999 bytes.*FEDKGE_LONGEST_LINE"):
        read_path(path)
    monkeypatch.setenv(limits.LONGEST_LINE, "6000")
    assert len(read_path(path).train) == 2


@pytest.mark.parametrize("content", [b"x" * 100_000, b"\n" * 100_000, b"x" * 100_000 + b"\n"])
def test_memory_for_a_line_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setenv(limits.LONGEST_LINE, "10000")
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match="FEDKGE_LONGEST_LINE"):
        list(line_blocks(path, block_bytes=1000))


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "\u00b2", "1_000", "lots", "9" * 30])
def test_limits_are_whole_numbers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(limits.LARGEST_INPUT, text)
    with pytest.raises(ConfigurationError, match="FEDKGE_LARGEST_INPUT: expected a whole number"):
        input_limits()


def test_usual_limits_are_far_above_what_graphs_need() -> None:
    usual = InputLimits()
    assert usual.decompressed(1) == 64 * MEGABYTE
    assert usual.decompressed(10 * MEGABYTE) == 2500 * MEGABYTE


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.nt", "a.tsv.gz", "a.tsv.zst", "a.parquet"])
def test_a_pipe_is_refused_before_anything_waits_for_it(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    found: list[Exception] = []

    def read() -> None:
        try:
            load(tmp_path / name)
        except Exception as error:
            found.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout=60)
    assert [type(error) for error in found] == [DataError]
    assert "expected a plain file, got a pipe" in str(found[0])
