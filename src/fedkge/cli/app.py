"""The Typer application: the verbs, `--version` and `--debug`."""

from __future__ import annotations

from typing import Annotated

import typer

from fedkge import __version__
from fedkge.cli import (
    account,
    attack,
    audit,
    compare,
    data,
    demo,
    evaluate,
    export,
    federation,
    predict,
    report,
    reproduce,
    train,
)
from fedkge.cli.errors import guarded, show_tracebacks
from fedkge.cli.registered import RegisteredHelp

app = typer.Typer(
    name="fedkge",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fedkge {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with: fedkge demo")
def _options(
    version: Annotated[  # noqa: ARG001 (handled by its callback)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Knowledge-graph embeddings, trained across organisations that may not show each other their graphs.

    Results go to stdout, progress to stderr. Every verb has --help and --json.
    """
    show_tracebacks(debug)


app.command("demo", epilog=demo.EXAMPLE)(guarded(demo.demo))
app.command("train", cls=RegisteredHelp, epilog=train.TRAIN_EXAMPLE)(guarded(train.train))
app.command("resume", epilog=train.RESUME_EXAMPLE)(guarded(train.resume))
app.command("evaluate", epilog=evaluate.EXAMPLE)(guarded(evaluate.evaluate))
app.command("predict", epilog=predict.EXAMPLE)(guarded(predict.predict))
app.command("attack", cls=RegisteredHelp, epilog=attack.EXAMPLE)(guarded(attack.attack))
app.command("account", epilog=account.EXAMPLE)(guarded(account.account))
app.command("audit", epilog=audit.EXAMPLE)(guarded(audit.audit))
app.command("report", epilog=report.EXAMPLE)(guarded(report.report))
app.command("compare", epilog=compare.EXAMPLE)(guarded(compare.compare))
app.command("reproduce", epilog=reproduce.EXAMPLE)(guarded(reproduce.reproduce))
app.command("export", epilog=export.EXAMPLE)(guarded(export.export))
app.command("server", epilog=federation.SERVER_EXAMPLE)(guarded(federation.server))
app.command("client", epilog=federation.CLIENT_EXAMPLE)(guarded(federation.client))
app.add_typer(federation.app, name="federation")
app.add_typer(data.app, name="data")
