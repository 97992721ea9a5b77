"""How much a graph file may ask of the machine: the length of a line, and the size after decompression.

A small compressed file can stand for any number of bytes. The limits are far above what graphs need, and environment
variables raise them. They say what a machine accepts and change no result, so they are not part of a run's
configuration.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fedkge.base.errors import ConfigurationError, DataError

LONGEST_LINE, LARGEST_INPUT, LARGEST_EXPANSION = (
    "FEDKGE_LONGEST_LINE",
    "FEDKGE_LARGEST_INPUT",
    "FEDKGE_LARGEST_EXPANSION",
)
FREE_BYTES = 64 * 2**20
"""So much may come out of any compressed file: a tiny one with a few repeated lines is no attack."""

MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class InputLimits:
    """Limits for one file.

    longest_line       bytes of one line, and of blank lines in a row
    largest_input      bytes after decompression
    largest_expansion  bytes after decompression for each byte of the file, beyond the first 64 MiB

    >>> InputLimits(largest_expansion=10).decompressed(file_bytes=2**30) == 10 * 2**30
    True
    """

    longest_line: int = 16 * 2**20
    largest_input: int = 64 * 2**30
    largest_expansion: int = 250

    def decompressed(self, file_bytes: int) -> int:
        """How many bytes may come out of a compressed file of this size."""
        return min(self.largest_input, max(FREE_BYTES, self.largest_expansion * file_bytes))

    def check_decompressed(self, path: Path, file_bytes: int, produced: int) -> None:
        """Refuse a file that unpacks to more than the limits allow."""
        if produced <= self.decompressed(file_bytes):
            return
        if produced > self.largest_input:
            raise DataError(
                f"{path}: expected at most {self.largest_input} bytes after decompression, got more; if the file is "
                f"what it should be, set {LARGEST_INPUT} to a larger number of bytes"
            )
        raise DataError(
            f"{path}: expected at most {self.largest_expansion} times its {file_bytes} bytes after decompression, got "
            f"more than {produced // max(file_bytes, 1)} times; if the file is what it should be, set "
            f"{LARGEST_EXPANSION} to a larger number"
        )

    def line_too_long(self, path: Path, line: int) -> DataError:
        """What to say of a line that is too long, or of too many blank lines in a row."""
        return DataError(
            f"{path}:{line}: expected lines (and blank lines in a row) of at most {self.longest_line} bytes, got more; "
            f"if the file is what it should be, set {LONGEST_LINE} to a larger number of bytes"
        )


def input_limits() -> InputLimits:
    """The limits, with what the environment says.

    >>> input_limits().longest_line
    16777216
    """
    usual = InputLimits()
    return InputLimits(
        _chosen(LONGEST_LINE, usual.longest_line),
        _chosen(LARGEST_INPUT, usual.largest_input),
        _chosen(LARGEST_EXPANSION, usual.largest_expansion),
    )


def _chosen(variable: str, usual: int) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text)):
        raise ConfigurationError(f"{variable}: expected a whole number above 0, got {text[:40]!r}")
    return int(text)
