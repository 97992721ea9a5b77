"""What `fedkge server` and `fedkge client` print when they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedkge.cli.tables import print_json, print_line, stdout
from fedkge.deploy.status_lines import describe


def show_end(status: dict[str, Any], run: Path, as_json: bool) -> None:
    """The last status and the run directory."""
    facts = {key: value for key, value in status.items() if key not in ("notes", "noted")}
    if as_json:
        print_json({"run": str(run), **facts})
        return
    stdout().print(describe(facts))
    print_line(f"Run: {run}")
