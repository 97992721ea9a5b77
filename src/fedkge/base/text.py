"""Text of unknown origin, made safe to show.

Names come from files and messages that others wrote. A control character in one of them could forge a line of a log or
control a terminal. An invisible character could make two names look alike. All text that is shown, logged or sent
passes through `printable`.
"""

from __future__ import annotations

LINES = "\n\t"
"""The characters that our own text of several lines may keep."""


def printable(text: str, longest: int | None = None, keep: str = "") -> str:
    """The text with non-printing characters written as escapes, cut after `longest` characters.

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
