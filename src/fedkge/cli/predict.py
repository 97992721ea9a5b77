"""`fedkge predict`: what the model answers, with names."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import RenderableType

from fedkge.api.predictions import Answer
from fedkge.api.predictions import predict as answer_of
from fedkge.cli.arguments import Json, RunPath
from fedkge.cli.tables import grid, print_json, stdout

EXAMPLE = "Example: fedkge predict runs/fedkge-demo --head OMIM:143100 --relation has_phenotype --top 5"


def predict(
    run: RunPath,
    relation: Annotated[str, typer.Option(help="Name of the relation.")],
    head: Annotated[str | None, typer.Option(help="Name or label of the head.")] = None,
    tail: Annotated[str | None, typer.Option(help="Name or label of the tail.")] = None,
    top: Annotated[int, typer.Option(help="Number of answers.")] = 10,
    client: Annotated[
        str | None,
        typer.Option(help="The client whose model answers. Without it, the first client that knows the names."),
    ] = None,
    unseen_only: Annotated[
        bool, typer.Option("--unseen", help="Leave out triples that the model was trained on.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Complete a triple: find its best tails or its best heads.

    With --head, the command lists the best tails of (head, relation, ?). With --tail, it lists the best heads of
    (?, relation, tail). With both, it prints the score and the rank of that one triple.
    """
    answer = answer_of(run, relation, head=head, tail=tail, top=top, client=client, unseen_only=unseen_only)
    if as_json:
        print_json(asdict(answer))
    else:
        stdout().print(answer_table(answer))


def answer_table(answer: Answer) -> RenderableType:
    """The predictions as a table; the question is its title."""
    if not answer.predictions:
        return grid("No answer except triples that the model was trained on", ("answer",), [])
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
