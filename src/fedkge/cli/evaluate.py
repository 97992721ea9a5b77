"""`fedkge evaluate`: rank a run's held-out triples again, beside the popularity controls."""

from __future__ import annotations

from typing import Annotated

import typer

from fedkge.api.opening import opened as open_run
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.cli.arguments import Json, RunPath
from fedkge.cli.metric_tables import metric_rows, metric_table
from fedkge.cli.tables import grid, print_json, say, stderr, stdout
from fedkge.cli.training import label_of

EXAMPLE = "Example: fedkge evaluate runs/three --split valid --by-relation"


def evaluate(
    run: RunPath,
    split: Annotated[str, typer.Option(metavar="test|valid", help="The held-out triples to rank.")] = "test",
    by_relation: Annotated[bool, typer.Option("--by-relation", help="Also print one line per relation.")] = False,
    as_a_client: Annotated[
        bool,
        typer.Option("--as-a-client", help="Filter by each client's own triples only, as the client itself would."),
    ] = False,
    keep_leaked: Annotated[
        bool | None,
        typer.Option(
            "--keep-leaked/--no-keep-leaked",
            help="Rank held-out triples that are in train too. Without it, as in the training of the run.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Rank the held-out triples of a run: MRR, Hits@k and AMRI.

    Ranks are filtered and cover both sides. Each client ranks its own entities. AMRI is the adjusted mean rank index:
    1 is perfect, 0 is chance. The table also shows the popularity controls.
    """
    if split not in ("test", "valid"):
        raise ConfigurationError(f"--split: expected test or valid, got {split!r}")
    opened = open_run(run)
    with stderr().status(f"ranking {split} triples"):
        evaluations = opened.evaluate(
            split, as_a_client=as_a_client, keep_leaked=keep_leaked, threads=opened.configuration.training.threads
        )
    if not evaluations:
        raise DataError(f"{run}: no client has {split} triples that are not in train too")
    if left_out := sum(evaluation.left_out for evaluation in evaluations.values()):
        say(f"warning: {left_out:,} {split} triples are in train too and were left out; --keep-leaked ranks them")
    record = evaluations.record()
    relations = evaluations.by_relation() if by_relation else []
    if as_json:
        print_json({"run": str(run), "split": split, **record, **({"relations": relations} if by_relation else {})})
        return
    console = stdout()
    title = f"{split.capitalize()} triples, filtered ranking on both sides"
    console.print(metric_table(metric_rows(record, label_of(opened)), title))
    if by_relation:
        rows = [
            (
                row["relation"],
                f"{row['triples']:,}",
                *(f"{row[f'{side}_mrr']:.3f}" for side in ("tail", "head", "both")),
            )
            for row in relations
        ]
        console.print(grid("By relation", ("relation", "triples", "tail MRR", "head MRR", "both MRR"), rows))
