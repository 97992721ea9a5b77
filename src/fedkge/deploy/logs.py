"""The logs of a federation's processes: one record is one printable line, even if it quotes hostile text."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib import resources

from fedkge.base.text import LINES, printable

LOG_CONFIGURATION, WRITTEN = "log_config.json", "fedkge_written"
LONGEST_LINE, MOST_LINES = 20_000, 200
"""NVFlare logs text from any sender, such as the topic of an unknown message."""


class Printable(logging.Filter):
    """Escapes characters that do not print, in the message and in a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, with its texts made printable."""
        record.msg, record.args = printable(record.getMessage(), LONGEST_LINE), ()
        if record.exc_info:
            record.exc_text = printable(logging.Formatter().formatException(record.exc_info), keep=LINES)
        return True


class Measured(logging.Filter):
    """Limits the lines per minute of each NVFlare logger: one line per message from any sender could fill the disk.

    >>> measured = Measured(clock=lambda: 0.0)
    >>> lines = [logging.makeLogRecord({"name": "nvflare.aux", "msg": "unknown topic"}) for _ in range(1000)]
    >>> sum(map(measured.filter, lines))
    200
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._lines: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written. Each handler asks once, and all get the same answer."""
        facts = vars(record)
        if WRITTEN not in facts:
            facts[WRITTEN] = record.name.startswith("fedkge") or self._count(record)
        return bool(facts[WRITTEN])

    def _count(self, record: logging.LogRecord) -> bool:
        with self._lock:
            minute = int(self._clock() // 60)
            if minute != self._minute:
                left_out = sum(max(0, lines - MOST_LINES) for lines in self._lines.values())
                self._minute, self._lines = minute, Counter()
                if left_out:
                    record.msg, record.args = f"({left_out} lines were left out before) {record.getMessage()}", ()
            self._lines[record.name] += 1
            return self._lines[record.name] <= MOST_LINES


_FILTER = Printable()


def log_of(name: str) -> logging.Logger:
    """The logger of this name, which writes printable lines only.

    >>> import io
    >>> log, stream = log_of("fedkge.example"), io.StringIO()
    >>> log.addHandler(logging.StreamHandler(stream))
    >>> log.warning("refused: %s", "\\x1b[2J\\nround 9: all is well"); stream.getvalue()
    'refused: \\\\x1b[2J\\\\nround 9: all is well\\n'
    """
    logger = logging.getLogger(name)
    logger.addFilter(_FILTER)  # once: a filter that is there already is not added again
    return logger


def nvflare_logging() -> bytes:
    """The logging configuration of the installed NVFlare, with printable lines and a limit on their number."""
    text = resources.files("nvflare.fuel.utils").joinpath(LOG_CONFIGURATION).read_text(encoding="utf-8")
    configuration = json.loads(text)
    own = {kind.__name__.lower(): {"()": f"{__name__}.{kind.__name__}"} for kind in (Measured, Printable)}
    configuration["filters"] = {**configuration.get("filters", {}), **own}
    for handler in configuration["handlers"].values():
        handler["filters"] = [*handler.get("filters", []), *own]
    return json.dumps(configuration, indent=2).encode()
