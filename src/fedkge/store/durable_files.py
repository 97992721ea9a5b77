"""Files that are complete or absent: written to a temporary file, synced, renamed. Tensors are safetensors."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from fedkge.base.errors import RunError
from fedkge.base.plain_files import open_plain, parse_json
from fedkge.base.private_files import make_private, new_file

Tensors = Mapping[str, NDArray[Any]]

PARTIAL = ".partial"
START_AGAIN = "start again (`fedkge resume`; at a site of a federation `fedkge client`)"
READABLE = ("F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")
"""The number types that fedkge reads, as safetensors names them."""
DTYPES: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "F32",
    np.dtype(np.float64): "F64",
    np.dtype(np.int32): "I32",
    np.dtype(np.int64): "I64",
}


class StorageError(RunError):
    """A file of a run could not be written: the disk is full, or its folder is read-only.

    >>> StorageError("client-0.safetensors: could not be written").exit_code
    6
    """


def write_atomically(path: Path, *content: bytes | memoryview) -> None:
    """Replace `path` by `content` so that a crash leaves either the old file or the new one.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a"), b"who", b"le"); Path(folder, "a").read_bytes()
    b'whole'
    """
    write_beside(path, *content)
    try:
        put_in_place(path)
    except RunError:
        _remove(beside(path))
        raise


def beside(path: Path) -> Path:
    """The temporary path of a file until it is complete."""
    return path.with_name(path.name + PARTIAL)


def write_beside(path: Path, *content: bytes | memoryview) -> None:
    """Write and sync what `put_in_place` will put at `path`."""
    try:
        new_file(beside(path))
        with beside(path).open("wb") as file:
            for part in content:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        _remove(beside(path))  # an incomplete file must not fill the disk
        raise _unwritten(path, error) from error


def put_in_place(path: Path) -> None:
    """Replace `path` by what was written beside it."""
    try:
        beside(path).replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise _unwritten(path, error) from error


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _unwritten(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path}: could not be written ({error.strerror or error}); "
        f"free some space or make the folder writable, then {START_AGAIN}"
    )


def make_folder(path: Path) -> None:
    """Make `path` and its parents, for their owner only. They survive a power cut."""
    try:
        for folder in make_private(path):
            sync_folder(folder.parent)
    except OSError as error:
        raise RunError(f"{path}: cannot be made ({error.strerror or error}); choose another --out") from error


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the file names in it survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_tensors(path: Path, tensors: Mapping[Any, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON facts in the safetensors format; the same input gives the same bytes."""
    write_atomically(path, *_content(tensors, facts))


def write_tensors_beside(path: Path, tensors: Mapping[Any, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Like `save_tensors`, but it does not put the file in place. The temporary file survives a power cut."""
    write_beside(path, *_content(tensors, facts))
    try:
        sync_folder(path.parent)
    except OSError as error:
        _remove(beside(path))
        raise _unwritten(path, error) from error


def _content(tensors: Mapping[Any, NDArray[Any]], facts: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    text = json.dumps(facts)
    yield from safetensors_parts(tensors, {"fedkge": text, "checksum": _checksum(tensors, text)})


def safetensors_parts(
    tensors: Mapping[Any, NDArray[Any]],
    metadata: Mapping[str, str],
    dtypes: Mapping[np.dtype[Any], str] = DTYPES,
) -> Iterator[bytes | memoryview]:
    """A safetensors file in parts, arrays as they lie in memory; the same input gives the same bytes.

    Only arrays of these `dtypes` are written. The library's own `save` copies each array twice, and writes metadata in
    another order each time.
    """
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    arrays = {str(name): np.ascontiguousarray(array) for name, array in ordered}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": dtypes[array.dtype], "shape": array.shape, "data_offsets": (begin, end)}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    yield len(head).to_bytes(8, "little")
    yield head
    yield from map(raw_bytes, arrays.values())


def load_facts(path: Path) -> dict[str, Any]:
    """Only the facts that `save_tensors` wrote; the tensors are not read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder, "a"), {"x": np.zeros(3)}, {"round": 2}); load_facts(Path(folder, "a"))
    {'round': 2}
    """
    try:
        open_plain(path).close()
        with safe_open(path, framework="numpy") as file:
            return _facts((file.metadata() or {}).get("fedkge", "{}"))
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def load_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `save_tensors` wrote. A missing or damaged file is an error."""
    try:
        open_plain(path).close()
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: read_tensor(file, name) for name in file.keys()}  # noqa: SIM118 - not a dict
        text = metadata.get("fedkge", "{}")
        if metadata.get("checksum") != _checksum(tensors, text):
            raise ValueError("its checksum is wrong")
        facts = _facts(text)
    except FileNotFoundError as error:
        raise RunError(f"{path}: no such file") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, error) from error
    return tensors, facts


def _facts(text: str) -> dict[str, Any]:
    facts = parse_json(text)
    if not isinstance(facts, dict):
        raise ValueError(f"expected a JSON object as its facts, got {facts!r:.40}")
    return facts


def _damaged(path: Path, error: Exception) -> RunError:
    return RunError(
        f"{path}: expected a safetensors file, got a damaged one ({error}); "
        "restore it from a copy, or start again with --overwrite"
    )


def read_tensor(file: Any, name: str) -> NDArray[Any]:
    """One tensor of an open safetensors file. Number types that NumPy lacks, such as BF16 and F8, are a ValueError."""
    kind = file.get_slice(name).get_dtype()
    if kind not in READABLE:
        raise ValueError(f"tensor {name!r:.60} has numbers of type {kind}, expected one of {', '.join(READABLE)}")
    tensor: NDArray[Any] = file.get_tensor(name)
    return tensor


def raw_bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, without copying a contiguous one.

    >>> bytes(raw_bytes(np.array([[1]], np.int32)))
    b'\\x01\\x00\\x00\\x00'
    """
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def fingerprint(tensors: Mapping[Any, NDArray[Any]], facts: Mapping[str, Any]) -> str:
    """A digest of tensors and facts. It is the same before they are written and after they are read.

    >>> fingerprint({"a": np.zeros(2)}, {"round": 1})[:8], fingerprint({"a": np.zeros(2)}, {"round": 2})[:8]
    ('9bfee821', '676046b8')
    """
    digest = hashlib.sha256()
    for part in _parts(tensors, json.dumps(facts)):
        digest.update(part)
    return digest.hexdigest()


def _checksum(arrays: Tensors, text: str) -> str:
    checksum = 0
    for part in _parts(arrays, text):
        checksum = zlib.crc32(part, checksum)
    return f"{checksum:08x}"


def _parts(arrays: Mapping[Any, NDArray[Any]], text: str) -> Iterator[bytes | memoryview]:
    """The whole content of a file, in an order that does not depend on its layout."""
    yield text.encode()
    for name in sorted(arrays):
        array = arrays[name]
        yield f"{name} {array.dtype} {array.shape}".encode()
        yield raw_bytes(array)
