"""Names that both ends of NVFlare's channel use, and where each end finds its own settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey

from fedkge.deploy.processes import SERVER_VARIABLE, SITE_VARIABLE
from fedkge.errors import ConfigurationError

SERVER_FILE, SITE_FILE = "federation.toml", "site.toml"
REQUEST, REPLY, PING = "fedkge.request", "fedkge.reply", "fedkge.ping"
NUMBER, CONTENT, VERDICT = "number", "content", "verdict"
TAKEN = "taken"

__all__ = [
    "CONTENT",
    "NUMBER",
    "PING",
    "REPLY",
    "REQUEST",
    "SERVER_FILE",
    "SERVER_VARIABLE",
    "SITE_FILE",
    "SITE_VARIABLE",
    "TAKEN",
    "VERDICT",
    "settings_path",
]


def settings_path(variable: str, file_name: str, context: Any) -> Path:
    """The settings of this machine: named by the environment, or in NVFlare's folder for what is local."""
    named = os.environ.get(variable)
    if named:
        return Path(named)
    path = Path(context.get_prop(FLContextKey.WORKSPACE_OBJECT).get_site_config_dir()) / file_name
    if not path.exists():
        raise ConfigurationError(f"expected {path}, or {variable} to name the file; found neither")
    return path
