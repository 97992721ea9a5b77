"""The command line: one file per verb. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import io
import os
import sys

from fedkge.base.private_files import UMASK


def main() -> None:
    """Entry point of the command `fedkge`. `--debug` may stand anywhere."""
    from fedkge.cli.app import app  # noqa: PLC0415 (keeps `import fedkge.cli` free of Typer)

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to stop
    os.umask(UMASK)  # whatever a command writes, results and figures too, is for its user only
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    app(arguments, prog_name="fedkge")
