"""`fedkge tune`: search training options by validation triples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fedkge.api.tuning import Trial, Tuned
from fedkge.api.tuning import tune as search
from fedkge.base.errors import RunError
from fedkge.cli.arguments import Json
from fedkge.cli.options import given_options, with_configuration
from fedkge.cli.tables import grid, print_json, say, stdout
from fedkge.configuration import sections_as_toml
from fedkge.defences import parse
from fedkge.store.durable_files import make_folder, write_atomically

EXAMPLE = (
    "Example: fedkge tune --data codex-s --model rotate --rounds 10 --trials 20 --out rotate.toml, "
    "then: fedkge train --config rotate.toml"
)


@with_configuration
def tune(
    options: Mapping[str, Any],
    config: Annotated[Path | None, typer.Option(help="TOML file with fixed options. Flags take precedence.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many trainings.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Write the best options as TOML, for train --config.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out.")] = False,
    as_json: Json = False,
) -> None:
    """Search training options by validation triples (needs Optuna).

    It trains several times and shows the options that rank validation triples best. The search covers learning rate,
    negatives, temperature, and margin or regularisation. An option that you give is fixed. Test triples are not
    ranked. Tuning is refused under a defence: it would reveal validation triples.
    Install Optuna with pip install 'fedkge[tune]'.
    """
    if out is not None and os.path.lexists(out) and not overwrite:
        raise RunError(f"{out}: exists already; choose another --out, or say --overwrite")
    given = {key.replace("-", "_"): value for key, value in given_options(config, options).items()}
    data = parse(given).data.source
    fixed = {key: value for key, value in given.items() if key != "data"}
    tuned = search(data, trials=trials, progress=_tell, **fixed)
    if out is not None:
        make_folder(out.parent)
        write_atomically(out, sections_as_toml({"data": data, **tuned.options}).encode())
    if as_json:
        rows = [{"number": one.number, "value": one.value, "options": dict(one.options)} for one in tuned.trials]
        print_json({"best": dict(tuned.options), "value": tuned.best.value, "trials": rows})
        return
    _show(tuned)
    if out is not None:
        say(f"Written: {out}; train with: fedkge train --config {out}")


def _tell(trial: Trial) -> None:
    say(f"trial {trial.number + 1}: validation MRR {trial.value:.4f}")


def _show(tuned: Tuned) -> None:
    rows = tuned.rows()
    cells = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    stdout().print(grid(tuned.title(), list(rows[0]), cells, words=()))
