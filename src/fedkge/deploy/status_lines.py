"""The lines that `fedkge server` and `fedkge client` print from the status file of a job process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedkge.base.durations import duration


class StatusLines:
    """Prints each change once."""

    def __init__(self, tell: Callable[[str], None], before: Mapping[str, Any]) -> None:
        self._tell = tell
        self._noted = int(before.get("noted", 0))
        self._said = ""

    def hear(self, status: Mapping[str, Any]) -> None:
        """Print new notes and, if it has changed, the state."""
        noted = int(status.get("noted", 0))
        if noted > self._noted:
            for line in list(status.get("notes", []))[-(noted - self._noted) :]:
                self._tell(str(line))
            self._noted = noted
        line = describe(status)
        if line and line != self._said:
            self._said = line
            self._tell(line)


def describe(status: Mapping[str, Any]) -> str:
    """One line: the state, the round, the time left, the budget spent, who is there.

    >>> describe({"state": "training", "round": 3, "rounds": 20, "spent": 1.25, "epsilon": 8.0, "delta": 1e-5})
    'training, round 3 of 20, epsilon spent 1.25 of 8 at delta 1e-05'
    >>> describe({"state": "training", "round": 0, "rounds": 20, "seconds_left": 130.0, "present": ["a", "b"]})
    'training, round 0 of 20 done, about 2m10s left, connected: a, b'
    >>> describe({"state": "uploaded", "round": 3, "rounds": 20, "not_private": "this site has no defence"})
    'uploaded, round 3 of 20, NOT PRIVATE: this site has no defence'
    """
    parts = [str(status["state"])] if "state" in status else []
    if status.get("error"):
        parts.append(str(status["error"]))
    if "rounds" in status:
        done = " done" if "present" in status else ""
        parts.append(f"round {status.get('round', 0)} of {status['rounds']}{done}")
    if status.get("seconds_left"):
        parts.append(f"about {duration(float(status['seconds_left']))} left")
    if "spent" in status:
        most = f" of {status['epsilon']:g}" if status.get("epsilon") is not None else ""
        parts.append(f"epsilon spent {status['spent']:.3g}{most} at delta {status['delta']:g}")
    if status.get("not_private"):
        parts.append(f"NOT PRIVATE: {status['not_private']}")
    if status.get("present"):
        parts.append(f"connected: {', '.join(status['present'])}")
    if status.get("gone"):
        parts.append(f"out of budget: {', '.join(status['gone'])}")
    return ", ".join(parts)
