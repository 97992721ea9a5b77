"""The command line: one file per verb. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command `fedkge`. `--debug` may stand anywhere."""
    from fedkge.cli.app import app  # noqa: PLC0415 (keeps `import fedkge.cli` free of Typer)

    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    app(arguments, prog_name="fedkge")
