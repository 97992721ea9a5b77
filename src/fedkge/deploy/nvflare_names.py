"""Names that both ends of NVFlare's channel use, and where each end finds its own settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey

from fedkge.base.errors import ConfigurationError
from fedkge.deploy.processes import SERVER_VARIABLE, SITE_VARIABLE

SERVER_FILE, SITE_FILE = "federation.toml", "site.toml"
REQUEST, REPLY, PING = "fedkge.request", "fedkge.reply", "fedkge.ping"
SEAL, TOKEN, NUMBER, CONTENT, VERDICT, KNOWN = "seal", "token", "number", "content", "verdict", "known"
TAKEN = "taken"

__all__ = [
    "CONTENT",
    "KNOWN",
    "NUMBER",
    "PING",
    "REPLY",
    "REQUEST",
    "SEAL",
    "SERVER_FILE",
    "SERVER_VARIABLE",
    "SITE_FILE",
    "SITE_VARIABLE",
    "TAKEN",
    "TOKEN",
    "VERDICT",
    "settings_path",
    "startup_folder",
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


def startup_folder(context: Any) -> Path:
    """The `startup` folder of the NVFlare workspace that this process runs in: certificates and keys."""
    return Path(context.get_prop(FLContextKey.WORKSPACE_OBJECT).get_startup_kit_dir())
