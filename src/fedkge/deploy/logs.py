"""The logs of a federation's processes: a line is a line, whoever sent what stands in it."""

from __future__ import annotations

import json
import logging
from importlib import resources

from fedkge.text import LINES, printable

LOG_CONFIGURATION = "log_config.json"
LONGEST_LINE = 20_000
"""NVFlare repeats what anybody sends, such as the topic of a message that it does not know."""


class Printable(logging.Filter):
    """Writes out what does not print, in the message and in a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, its texts made printable."""
        record.msg, record.args = printable(record.getMessage(), LONGEST_LINE), ()
        if record.exc_info:
            record.exc_text = printable(logging.Formatter().formatException(record.exc_info), keep=LINES)
        return True


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
    """The logging configuration of the NVFlare that is installed here; every handler writes printable lines only."""
    text = resources.files("nvflare.fuel.utils").joinpath(LOG_CONFIGURATION).read_text(encoding="utf-8")
    configuration = json.loads(text)
    configuration.setdefault("filters", {})["printable"] = {"()": f"{__name__}.{Printable.__name__}"}
    for handler in configuration["handlers"].values():
        handler["filters"] = [*handler.get("filters", []), "printable"]
    return json.dumps(configuration, indent=2).encode()
