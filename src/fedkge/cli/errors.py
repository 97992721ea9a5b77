"""What a person sees when something goes wrong: one line and an exit code; with --debug the traceback too."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, ParamSpec, TypeVar

import typer

from fedkge.base.errors import FedkgeError
from fedkge.base.text import LINES, printable

INTERRUPTED = 130
CLOSED_PIPE = 141
"""As shells say it: 128 and the number of SIGINT or SIGPIPE."""

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class _Debugging:
    on = False


def show_tracebacks(on: bool) -> None:
    """Whether errors come with their traceback."""
    _Debugging.on = on


def guarded(verb: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """The verb with its errors turned into messages and exit codes."""

    @functools.wraps(verb)
    def wrapper(*arguments: Arguments.args, **options: Arguments.kwargs) -> Value:
        try:
            value = verb(*arguments, **options)
            sys.stdout.flush()
            return value
        except FedkgeError as error:
            _fail(str(error), error.exit_code, error)
        except KeyboardInterrupt as error:
            _fail("interrupted", INTERRUPTED, error)
        except OSError as error:
            if error.errno == errno.EPIPE:
                _silence_stdout()
                raise typer.Exit(CLOSED_PIPE) from None
            _fail(_describe(error), FedkgeError.exit_code, error)
        except MemoryError as error:
            _fail("out of memory: choose a smaller dimension, or a smaller graph", FedkgeError.exit_code, error)

    return wrapper


def _fail(message: str, code: int, error: BaseException) -> NoReturn:
    if _Debugging.on:
        raise error
    typer.echo(f"error: {printable(message, keep=LINES)}", err=True)
    raise typer.Exit(code) from None


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _silence_stdout() -> None:
    """The reader has gone; what is still buffered must not raise again when Python ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


@contextmanager
def stops_at_once(hint: str, tidy: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C end a training at once: what is on disk is whole at every moment, so there is nothing to wait for.

    Python would wait for the clients' threads to end their round first, which can take minutes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        tidy()
        typer.echo(f"interrupted; {printable(hint)}", err=True)
        sys.stdout.flush()
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
