"""The application: the table of all commands, `--version` and `--debug`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from fedkge import __version__
from fedkge.cli.errors import show_tracebacks
from fedkge.cli.lazy import Verb, VerbGroup


class Data(VerbGroup):
    """`fedkge data ...`."""

    about = "List, download, describe and split graphs."
    verbs: ClassVar = {
        "list": Verb("fedkge.cli.data.list_data", "List the data sets that fedkge knows."),
        "show": Verb("fedkge.cli.data.show", "Show the origin, size, licence and citation of a data set."),
        "fetch": Verb("fedkge.cli.data.fetch", "Download a data set and check its sha256."),
        "describe": Verb("fedkge.cli.data.describe", "Read a graph and show what it holds and what was dropped."),
        "split": Verb("fedkge.cli.data.split", "Split a graph into client shards and show what they share."),
    }


class Federation(VerbGroup):
    """`fedkge federation ...`."""

    about = "Set up, check and try a federation of organisations on their own machines."
    verbs: ClassVar = {
        "try": Verb("fedkge.cli.federation.try_out", "Run a whole federation on this machine, one process per party."),
        "init": Verb("fedkge.cli.federation.init", "Write federation.toml and the start-up kits."),
        "key": Verb("fedkge.cli.federation.key", "Make the consortium key, which turns entity names into pseudonyms."),
        "signing-key": Verb("fedkge.cli.federation.signing_key", "Make the key that signs the server's requests."),
        "check": Verb("fedkge.cli.federation.check", "Show what this site would promise and send, and send nothing."),
        "job": Verb("fedkge.cli.federation.job", "Write the job folder for an NVFlare that runs already."),
        "gather": Verb("fedkge.cli.federation.gather", "Join the runs of the server and all sites into one run."),
    }


class Fedkge(VerbGroup):
    """`fedkge ...`."""

    groups: ClassVar = {"data": Data, "federation": Federation}
    verbs: ClassVar = {
        "demo": Verb("fedkge.cli.demo", "Run a complete example: train, attack, defend, attack and audit again."),
        "train": Verb("fedkge.cli.train", "Train a model on one graph, or as a federation of clients."),
        "resume": Verb("fedkge.cli.resume", "Continue a run that was interrupted."),
        "tune": Verb("fedkge.cli.tune", "Search training options by validation triples (needs Optuna)."),
        "evaluate": Verb("fedkge.cli.evaluate", "Rank the held-out triples of a run: MRR, Hits@k and AMRI."),
        "predict": Verb("fedkge.cli.predict", "Complete a triple: find its best tails or its best heads."),
        "attack": Verb("fedkge.cli.attack", "Run inference attacks on a recorded run and show how well each one does."),
        "account": Verb("fedkge.cli.account", "Compute the epsilon of a plan or of runs, or the noise for a budget."),
        "audit": Verb("fedkge.cli.audit", "Compute a lower bound of epsilon and compare it with the run's claim."),
        "report": Verb("fedkge.cli.report", "Write the privacy report: one copy to share, one for the owner."),
        "compare": Verb("fedkge.cli.compare", "Compare runs: claimed and audited epsilon, strongest attack, utility."),
        "reproduce": Verb("fedkge.cli.reproduce", "Reproduce the paper's tables and figures (in a clone of fedkge)."),
        "export": Verb("fedkge.cli.export", "Write the embedding vectors for other programs."),
        "server": Verb("fedkge.cli.server", "Run the server of a federation until its last round."),
        "client": Verb("fedkge.cli.client", "Take part in a federation with this site's own graph and budget."),
    }


app = typer.Typer(
    name="fedkge",
    cls=Fedkge,
    no_args_is_help=True,
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
    """Train knowledge-graph embeddings across organisations that keep their graphs to themselves.

    fedkge proves how much each client reveals (differential privacy) and measures it (attacks and audits).

    Results go to stdout, progress to stderr. Every command has --help and --json.
    """
    show_tracebacks(debug)
