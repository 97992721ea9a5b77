"""Text of unknown origin on a terminal and in a log: it is shown, and does nothing."""

import io
import logging

import pytest
import typer
from rich.console import Console

from fedkge.base.errors import DataError
from fedkge.base.text import printable
from fedkge.cli.errors import guarded
from fedkge.cli.tables import PlainConsole, grid, say, stderr, stdout
from fedkge.deploy import coordinator, member
from fedkge.deploy.logs import log_of

NAME = "[red]fever[/red] [link=http://evil.example]click[/link]\x1b[2J\x1b]0;owned\x07\u202edne\r\x9b31m"


def harmless(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def test_a_console_shows_markup_as_it_is_and_no_control_characters() -> None:
    for console in (stdout(), stderr()):
        assert isinstance(console, PlainConsole)
        console.file = stream = io.StringIO()
        console.print(NAME, soft_wrap=True)
        console.print(f"bold {NAME}", style="bold", markup=True, soft_wrap=True)
        console.print(grid(NAME, ("name", "triples"), [(NAME, "7")]))
        shown = stream.getvalue()
        assert harmless(shown)
        assert shown.count("[red]fever[/red]") >= 3
        assert "\\x1b[2J" in shown


def test_rich_alone_would_let_escapes_through() -> None:
    """Why the console is our own."""
    stream = io.StringIO()
    Console(file=stream).print("a\x1b[2Jb", markup=False)
    assert "\x1b" in stream.getvalue()


def test_what_is_said_and_errors_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    say(NAME)

    def fail() -> None:
        raise DataError(f"{NAME}: expected a name\nsecond line")

    with pytest.raises(typer.Exit):
        guarded(fail)()
    shown = capsys.readouterr().err
    assert harmless(shown)
    assert "expected a name\nsecond line" in shown


def test_a_log_line_is_one_line_and_a_traceback_is_harmless() -> None:
    log, stream = log_of("fedkge.test-log"), io.StringIO()
    assert log_of("fedkge.test-log") is log
    assert len(log.filters) == 1
    log.addHandler(logging.StreamHandler(stream))
    log.warning("%s: refused: %s", "north", f"{NAME}\nround 9: everything is fine")
    assert stream.getvalue().count("\n") == 1
    try:
        raise ValueError(NAME)
    except ValueError:
        log.exception("a mistake")
    assert harmless(stream.getvalue())


def test_loggers_of_both_parties_are_harmless() -> None:
    for module in (coordinator, member):
        assert module.LOG.filters


def test_printable_keeps_what_prints_and_its_bound() -> None:
    assert printable("ä 日本 [x]") == "ä 日本 [x]"
    assert len(printable("\x1b" * 100, longest=50)) == 50
    assert printable("\ud800") == "\\ud800"
