"""Bytes to a header text and arrays, and back: the safetensors layout, read by a strict parser; never pickle.

    8 bytes   length of the layout, little-endian
    layout    JSON: {"__metadata__": {"fedkge": HEADER}, NAME: {"dtype": ..., "shape": ..., "data_offsets": ...}, ...}
    data      the arrays one after the other, without a gap

`unpack` is total: any bytes give a text and arrays, or a WireError. Its work and memory are linear in the bytes that
came, because an array holds at least one byte per row and the arrays share no bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from fedkge.base.errors import FedkgeError
from fedkge.base.text import printable
from fedkge.store.durable_files import safetensors_parts

Arrays: TypeAlias = dict[str, NDArray[Any]]

LARGEST_MESSAGE = 2**31
LARGEST_LAYOUT = 2**20
MOST_ARRAYS = 4096
WIDEST_ROW = 2**20
LONGEST_ERROR = 500
ARRAY_NAME = re.compile(r"[A-Za-z0-9-]{1,63}(/[a-z]{1,15})?")
DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class WireError(FedkgeError):
    """A message that is not what a fedkge site or server would send. Its text is short and printable, whatever came.

    >>> WireError("expected a message").exit_code
    6
    >>> str(WireError("expected a kind, got \\x1b[2J"))
    'expected a kind, got \\\\x1b[2J'
    """

    exit_code = 6

    def __init__(self, text: str) -> None:
        super().__init__(printable(text, LONGEST_ERROR))


_Size: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST_MESSAGE)]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an array is, and how to read it."""

    dtype: Literal["F32", "F16", "I64", "U8"]
    shape: Annotated[tuple[_Size, ...], Meta(min_length=1, max_length=2)]
    data_offsets: tuple[_Size, _Size]


class _Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text that travels with the arrays."""

    fedkge: str


_LAYOUT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)
_METADATA = msgspec.json.Decoder(_Metadata)


def pack(header: str, arrays: Arrays) -> bytes:
    """The bytes of a header and arrays; the same input gives the same bytes.

    >>> text, arrays = unpack(pack("{}", {"entities": np.ones((1, 2), np.float32)}))
    >>> text, arrays["entities"].tolist()
    ('{}', [[1.0, 1.0]])
    """
    return b"".join(safetensors_parts(arrays, {"fedkge": header}, DTYPE_NAMES))


def unpack(content: bytes | bytearray | memoryview, largest: int = LARGEST_MESSAGE) -> tuple[str, Arrays]:
    """The header's text and the arrays in these bytes, or a WireError. The arrays are read-only views of the bytes."""
    content = bytes(content)
    if len(content) > largest:
        raise WireError(f"expected at most {largest:,} bytes, got {len(content):,}")
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size % 8 or size > min(LARGEST_LAYOUT, len(content) - 8):
        raise WireError(
            f"expected a header of at most {LARGEST_LAYOUT:,} bytes, a multiple of 8, got {len(content):,} bytes"
        )
    try:
        layout = _LAYOUT.decode(content[8 : 8 + size])
        metadata = _METADATA.decode(layout.pop("__metadata__", msgspec.Raw(b"{}")))
        if len(layout) > MOST_ARRAYS:
            raise WireError(f"expected at most {MOST_ARRAYS} arrays, got {len(layout)}")
        entries = {name: _ENTRY.decode(raw) for name, raw in layout.items()}
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"expected a safetensors message, got something else ({error})") from error
    return metadata.fedkge, _arrays(entries, content, 8 + size)


def _arrays(entries: Mapping[str, _Entry], content: bytes, start: int) -> Arrays:
    """Cut the data: each array begins where the last one ended, and the last one ends with the message."""
    arrays: Arrays = {}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        dtype, count = DTYPES[entry.dtype], _count(name, entry)
        if entry.data_offsets != (end, end + count * dtype.itemsize) or end % dtype.itemsize:
            raise WireError(f"{name!r:.40}: expected {count} of {dtype} from byte {end}, got {entry.data_offsets}")
        if end + count * dtype.itemsize > len(content) - start:
            raise WireError(f"{name!r:.40}: expected {count} of {dtype}, got a message that ends before")
        arrays[name] = np.frombuffer(content, dtype, count, start + end if count else 0).reshape(entry.shape)
        end = entry.data_offsets[1]
    if start + end != len(content):
        raise WireError(f"expected {start + end:,} bytes, got {len(content):,}")
    return arrays


def _count(name: str, entry: _Entry) -> int:
    """How many numbers an array holds. Rows of no numbers cost no bytes, so there could be any number: none pass."""
    if not ARRAY_NAME.fullmatch(name):
        raise WireError(f"expected the name of an array, got {name!r:.40}")
    rows, width = entry.shape[0], entry.shape[1] if len(entry.shape) == 2 else 1
    if not 1 <= width <= WIDEST_ROW:
        raise WireError(f"{name}: expected rows of 1 to {WIDEST_ROW:,} numbers, got shape {list(entry.shape)}")
    return rows * width
