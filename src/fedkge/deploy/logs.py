"""The logs of a federation's processes: a line is a line, whoever sent what stands in it."""

from __future__ import annotations

import logging

from fedkge.text import LINES, printable


class _Printable(logging.Filter):
    """Writes out what does not print, in the message and in a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, its texts made printable."""
        record.msg, record.args = printable(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = printable(logging.Formatter().formatException(record.exc_info), keep=LINES)
        return True


_FILTER = _Printable()


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
