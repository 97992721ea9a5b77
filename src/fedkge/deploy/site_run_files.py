"""The files that a site keeps of a federation: its own view of recorded rounds, and at the end a run directory."""

from __future__ import annotations

import numpy as np

from fedkge.deploy.admission import Admission
from fedkge.federation.client import Client
from fedkge.federation.messages import Finish, Fit, Upload
from fedkge.runs.directory import LAST_ROUNDS, RunDirectory
from fedkge.runs.round import Round
from fedkge.runs.transcript import Transcript


def write_round(
    directory: RunDirectory, name: str, client: Client, request: Fit, upload: Upload, recorded: frozenset[int]
) -> None:
    """Write the site's view of a round into its own transcript, if site.toml asks for it."""
    if request.round not in recorded:
        return
    private = {name: client.unshared()}
    messages = Round(request.round, {name: request.rows}, {name: upload.rows}, private=private)
    Transcript(directory.path).write(messages)


def write_model_of_site(directory: RunDirectory, admission: Admission, client: Client, request: Finish) -> None:
    """Write the final model under the site's own names, so that `evaluate`, `predict` and `export` work on it."""
    own, relations = admission.rows()
    aligned = admission.site.aligned
    directory.write_vocabularies(aligned.entities, aligned.relations)
    relation_table = client.unshared()["relations"]
    counts = client.released.renumbered(own, relations).arrays() if client.released else {}
    trained = {LAST_ROUNDS: {client.name: client.round}} if admission.ledger and client.round else {}
    directory.write_model(
        {
            "entities": client.entities_with(request.rows),
            "own/client-0": own,
            "relations/client-0": np.ascontiguousarray(relation_table[relations]),
            "relation_ids/client-0": relations,
            **{f"counts/client-0/{key}": array for key, array in counts.items()},
        },
        {"round": request.round, **trained},
    )
    directory.write_metrics([])
