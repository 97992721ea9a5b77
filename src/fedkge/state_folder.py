"""Where fedkge keeps what belongs to a user and to no run: keys, and whatever must outlive a run directory."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_state_path

VARIABLE = "FEDKGE_STATE"


def state_folder() -> Path:
    """The user's state folder: `FEDKGE_STATE`, else the platform's. It may not exist yet.

    >>> os.environ["FEDKGE_STATE"] == str(state_folder()) if "FEDKGE_STATE" in os.environ else True
    True
    """
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else user_state_path("fedkge", appauthor=False)
