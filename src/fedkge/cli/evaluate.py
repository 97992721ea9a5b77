"""`fedkge evaluate`: rank a run's held-out triples again, beside the popularity controls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkge.base.errors import ConfigurationError, DataError
from fedkge.cli.tables import grid, metric_rows, metric_table, print_json, say, stderr, stdout

EXAMPLE = "Example: fedkge evaluate runs/three --split valid --by-relation"


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    split: Annotated[str, typer.Option(metavar="test|valid", help="Which held-out triples.")] = "test",
    by_relation: Annotated[bool, typer.Option("--by-relation", help="Also one line per relation.")] = False,
    as_a_client: Annotated[
        bool, typer.Option("--as-a-client", help="Filter by each client's own triples only, as it would by itself.")
    ] = False,
    keep_leaked: Annotated[
        bool | None,
        typer.Option(
            "--keep-leaked/--no-keep-leaked",
            help="Also rank triples that are in train too; default: as the run was trained.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Rank held-out triples: MRR, Hits@k and adjusted mean rank index, filtered, both sides, own candidates."""
    from fedkge.api.opening import opened as open_run  # noqa: PLC0415 (heavy)
    from fedkge.cli.train import label_of  # noqa: PLC0415

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
