"""`fedkge resume`."""

from __future__ import annotations

from fedkge.cli.arguments import RunPath
from fedkge.cli.training import JsonOfRounds, Trackers, continue_run

EXAMPLE = "Example: fedkge resume runs/three"


def resume(run: RunPath, tracker: Trackers = None, as_json: JsonOfRounds = False) -> None:
    """Continue a run that was interrupted.

    The result is the same, byte for byte, as without the interruption.
    """
    continue_run(run, tracker or (), as_json)
