"""Text of unknown origin, made safe to show.

Names come from files and messages that others wrote. A control character in one of them could forge a line of a log or
drive a terminal; an invisible one could make two names look alike. What is shown, logged or sent passes through here.
"""

from __future__ import annotations


def printable(text: str, longest: int | None = None, *, lines: bool = False) -> str:
    """The text with every character that does not print written out as an escape, cut after `longest` characters.

    `lines` keeps line breaks and tabs: for messages of our own that have several lines.

    >>> printable("fever\\x1b[2J\\u202e")
    'fever\\\\x1b[2J\\\\u202e'
    >>> printable("a" * 9, longest=5)
    'aaaa…'
    >>> printable("one\\ntwo\\x07", lines=True)
    'one\\ntwo\\\\x07'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    shown = "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"
