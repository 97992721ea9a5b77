"""Where fedkge keeps what belongs to a user and to no run: keys, and whatever must outlive a run directory."""

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
    except RuntimeError as error:  # a container's user may have no home
        raise ConfigurationError(
            f"{VARIABLE}: expected a lasting folder for keys and witnesses, and this user has no home; set "
            f"{VARIABLE} to one that outlives the container"
        ) from error
