"""The numbers of requests: they only grow, at the server and at each site, and both remember them on disk.

A number is the time in nanoseconds, or one more than the last if the clock does not move forward. So a server that lost
its disk, or whose run directory was restored from a backup, still goes on above all numbers that it used. A site writes
a number to its disk before it acts on the request, and never acts on that number or a lower one again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from fedkge.base.errors import RunError
from fedkge.store.durable_files import make_folder, write_atomically

FILE = "request-number"
LARGEST = 2**63 - 1


class NumberFile:
    """The highest number so far, in a file that is always whole.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     numbers = NumberFile(Path(folder))
    ...     numbers.admit(5), numbers.admit(5), numbers.admit(4), NumberFile(Path(folder)).admit(6)
    (True, False, False, True)
    """

    def __init__(self, run: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self._path, self._clock = run / FILE, clock
        self._lock = threading.Lock()
        self._highest = self._read()

    def admit(self, number: int) -> bool:
        """Whether the number is higher than all before; if so it is on disk when this returns."""
        with self._lock:
            if number <= max(self._highest, self._read()):  # an earlier job's process may not have ended yet
                return False
            self._write(number)
            return True

    def next(self) -> int:
        """A number that is higher than all before; it is on disk when this returns."""
        with self._lock:
            number = max(self._highest + 1, self._clock())
            self._write(number)
            return number

    def _write(self, number: int) -> None:
        make_folder(self._path.parent)
        write_atomically(self._path, f"{number}\n".encode())
        self._highest = number

    def _read(self) -> int:
        try:
            text = self._path.read_text(encoding="ascii")
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            raise RunError(f"{self._path}: the number of the last request cannot be read ({error})") from error
        digits = text.strip()
        if not digits.isdecimal() or len(digits) > len(str(LARGEST)) or int(digits) > LARGEST:
            raise RunError(f"{self._path}: expected one whole number, got {text!r:.40}; remove the file")
        return int(text)
