"""Text of unknown origin, made safe to show.

Names come from files and messages that others wrote. A control character in one of them could forge a line of a log or
drive a terminal; an invisible one could make two names look alike. What is shown, logged or sent passes through here.
"""

from __future__ import annotations

LINES = "\n\t"
"""What a text of our own that has several lines may keep."""


def printable(text: str, longest: int | None = None, keep: str = "") -> str:
    """The text with every character that does not print written out as an escape, cut after `longest` characters.

    Characters of `keep` stay as they are.

    >>> printable("fever\\x1b[2J\\u202e")
    'fever\\\\x1b[2J\\\\u202e'
    >>> printable("a" * 9, longest=5)
    'aaaa…'
    >>> printable("one\\ntwo\\x07", keep=LINES)
    'one\\ntwo\\\\x07'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    shown = "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"
