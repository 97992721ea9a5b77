"""`fedkge predict`: what the model answers, with names."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkge.cli.tables import grid, print_json, stdout

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fedkge.api.predictions import Answer

EXAMPLE = "Example: fedkge predict runs/fedkge-demo --head OMIM:143100 --relation has_phenotype --top 5"


def predict(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    relation: Annotated[str, typer.Option(help="Name of the relation.")],
    head: Annotated[str | None, typer.Option(help="Name or label of the head.")] = None,
    tail: Annotated[
        str | None, typer.Option(help="Name or label of the tail; with a head, that triple is scored.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many answers.")] = 10,
    client: Annotated[
        str | None, typer.Option(help="Whose model answers; default: the first client that knows the names.")
    ] = None,
    unseen_only: Annotated[
        bool, typer.Option("--unseen", help="Leave out the triples that it was trained on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Complete a triple: the best tails of (head, relation, ?) or the best heads of (?, relation, tail)."""
    from fedkge.api.predictions import predict as answer_of  # noqa: PLC0415 (heavy)

    answer = answer_of(run, relation, head=head, tail=tail, top=top, client=client, unseen_only=unseen_only)
    if as_json:
        print_json(asdict(answer))
    else:
        stdout().print(answer_table(answer))


def answer_table(answer: Answer) -> RenderableType:
    """The predictions as a table; the question is its title."""
    if not answer.predictions:
        return grid("No answer that was not trained on", ("answer",), [])
    first = answer.predictions[0]
    given = first.head if answer.side == "tail" else first.tail
    words = answer.labels.get(given, "")
    named = f"{given} ({words})" if words else given
    question = f"({named}, {first.relation}, ?)" if answer.side == "tail" else f"(?, {first.relation}, {named})"
    rows = []
    for item in answer.predictions:
        found = item.tail if answer.side == "tail" else item.head
        rows.append((found, answer.labels.get(found, ""), item.known, str(item.rank), f"{item.score:.3f}"))
    return grid(
        f"{question}, asked of {answer.client}", ("answer", "label", "known", "rank", "score"), rows, words=(0, 1, 2)
    )
