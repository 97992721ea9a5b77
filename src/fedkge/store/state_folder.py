"""The folder for files that belong to a user and not to a run: keys and ledger witnesses."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_state_path

from fedkge.base.errors import ConfigurationError

VARIABLE = "FEDKGE_STATE"


def state_folder() -> Path:
    """The user's state folder: `FEDKGE_STATE`, else the platform's. It may not exist yet.

    >>> os.environ["FEDKGE_STATE"] == str(state_folder()) if "FEDKGE_STATE" in os.environ else True
    True
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    try:
        return user_state_path("fedkge", appauthor=False)
    except RuntimeError as error:  # a user in a container may have no home folder
        raise ConfigurationError(
            f"{VARIABLE}: expected a lasting folder for keys and witnesses, but this user has no home folder; set "
            f"{VARIABLE} to a folder that outlives the container"
        ) from error
