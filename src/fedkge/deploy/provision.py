"""Start-up kits: certificates and settings for the server, the coordinator and each site, by NVFlare's provisioning.

Besides NVFlare's own files, each kit gets a `local` folder that allows fedkge's two classes and nothing else: no custom
code, no shell commands, no log streaming. Each site should read it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from fedkge.base.errors import RunError, UnavailableError
from fedkge.base.private_files import private_umask
from fedkge.deploy.federation_file import KIT_FOLDERS, FederationFile
from fedkge.deploy.liveness import Liveness
from fedkge.deploy.request_keys import create_request_keys
from fedkge.store.durable_files import make_folder, write_atomically

CONTROLLER = "fedkge.deploy.nvflare_server.FederationController"
EXECUTOR = "fedkge.deploy.nvflare_site.SiteExecutor"
COORDINATOR = "coordinator@fedkge.federation"
SERVER_KIT, COORDINATOR_KIT, AUTHORITY = KIT_FOLDERS
SITE_KIT = "kit"

_FLARE = "nvflare.app_common"

README = """\
The start-up kit of one party of a fedkge federation: certificates and settings, made by NVFlare. Keep it secret.
Do not start anything in here by hand, not even start.sh; use `fedkge client site.toml` or `fedkge server
federation.toml`.
"""


class _Silent:
    """Drops the many log lines of NVFlare's provisioning; fedkge raises its own exceptions for errors."""

    def debug(self, *_: Any) -> None: ...
    def info(self, *_: Any) -> None: ...
    def warning(self, *_: Any) -> None: ...
    def error(self, *_: Any) -> None: ...


def provision(settings: FederationFile) -> dict[str, Path]:
    """Make the kits; returns the path of each participant's kit."""
    try:
        from nvflare.lighter.provision import prepare_builders, prepare_project  # noqa: PLC0415 (an extra)
        from nvflare.lighter.provisioner import Provisioner  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(
            "a federation on several machines needs NVFlare: pip install 'fedkge[nvflare]'"
        ) from error
    if settings.kits.exists() and any(settings.kits.iterdir()):
        raise RunError(
            f"{settings.kits}: expected a new or empty folder for the start-up kits, got one in use; choose another"
        )
    project = _project(settings)
    make_folder(settings.kits)
    work = settings.kits / AUTHORITY
    with private_umask():
        made = Provisioner(str(work), prepare_builders(project)).provision(prepare_project(project), logger=_Silent())
    source = Path(str(made.get("current_prod_dir", "")))
    if not source.is_dir() or made.get("build_error"):
        raise RunError(f"NVFlare could not make the start-up kits for {settings.server} in {settings.kits}")
    names = {settings.server: SERVER_KIT, COORDINATOR: COORDINATOR_KIT}
    names |= {site: f"{site}/{SITE_KIT}" for site in settings.sites}
    kits = {}
    for participant, folder in names.items():
        kits[participant] = settings.kits / folder
        make_folder(kits[participant].parent)
        shutil.move(source / participant, kits[participant])
        write_atomically(kits[participant] / "readme.txt", README.encode())
    for site in settings.sites:
        write_local(kits[site] / "local", site_resources(), site_permissions())
    create_request_keys(kits[settings.server] / "startup", [kits[site] / "startup" for site in settings.sites])
    return kits


def _project(settings: FederationFile) -> dict[str, Any]:
    def organisation(name: str) -> str:
        return name.replace("-", "_")

    clients = [{"name": site, "type": "client", "org": organisation(site)} for site in settings.sites]
    return {
        "api_version": 3,
        "name": settings.name,
        "description": "a fedkge federation",
        "participants": [
            {"name": settings.server, "type": "server", "org": "coordinator", "fed_learn_port": settings.port},
            *clients,
            {"name": COORDINATOR, "type": "admin", "org": "coordinator", "role": "lead"},
        ],
        "builders": [
            {
                "path": "nvflare.lighter.impl.workspace.WorkspaceBuilder",
                "args": {"template_file": "master_template.yml"},
            },
            {"path": "nvflare.lighter.impl.static_file.StaticFileBuilder", "args": {"config_folder": "config"}},
            {"path": "nvflare.lighter.impl.cert.CertBuilder"},
            {"path": "nvflare.lighter.impl.signature.SignatureBuilder"},
        ],
    }


def site_resources() -> dict[str, Any]:
    """The classes that a site's NVFlare may build for a job: fedkge's executor. Only messages go to the server."""
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [EXECUTOR],
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [
            {
                "id": "resource_manager",
                "path": f"{_FLARE}.resource_managers.gpu_resource_manager.GPUResourceManager",
                "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0, "expiration_period": 300},
            },
            {
                "id": "resource_consumer",
                "path": f"{_FLARE}.resource_consumers.gpu_resource_consumer.GPUResourceConsumer",
                "args": {},
            },
            {
                "id": "process_launcher",
                "path": f"{_FLARE}.job_launcher.client_process_launcher.ClientProcessJobLauncher",
                "args": {},
            },
        ],
    }


def server_resources(workspace: Path, liveness: Liveness | None = None) -> dict[str, Any]:
    """The settings of the server's NVFlare: one job at a time, and all its files in its own workspace."""
    storage = f"{_FLARE}.storages.filesystem_storage.FilesystemStorage"
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [CONTROLLER],
        "servers": [
            {
                "admin_storage": "transfer",
                "max_num_clients": 100,
                "heart_beat_timeout": (liveness or Liveness()).heartbeat_timeout,
                "download_job_url": "http://localhost/",
                "admin_timeout": 10.0,
            }
        ],
        "snapshot_persistor": {
            "path": f"{_FLARE}.state_persistors.storage_state_persistor.StorageStatePersistor",
            "args": {
                "uri_root": "/",
                "storage": {"path": storage, "args": {"root_dir": str(workspace / "snapshots"), "uri_root": "/"}},
            },
        },
        "components": [
            {
                "id": "job_scheduler",
                "path": f"{_FLARE}.job_schedulers.job_scheduler.DefaultJobScheduler",
                "args": {"max_jobs": 1, "min_schedule_interval": 2.0, "max_schedule_interval": 10.0},
            },
            {
                "id": "job_manager",
                "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
                "args": {"uri_root": str(workspace / "jobs"), "job_store_id": "job_store"},
            },
            {"id": "job_store", "path": storage},
            {
                "id": "process_launcher",
                "path": f"{_FLARE}.job_launcher.server_process_launcher.ServerProcessJobLauncher",
                "args": {},
            },
        ],
    }


def site_permissions() -> dict[str, Any]:
    """The coordinator's permissions at a site: start and end fedkge's job, and see that the site is connected."""
    lead = {
        "submit_job": "any",
        "manage_job": "n:submitter",
        "view": "any",
        "clone_job": "none",
        "download_job": "none",
        "operate": "none",
        "shell_commands": "none",
        "byoc": "none",
    }
    return {"format_version": "1.0", "permissions": {"lead": lead}}


def write_local(folder: Path, resources: dict[str, Any], permissions: dict[str, Any]) -> None:
    """Write the settings of one NVFlare installation into its `local` folder."""
    for name, content in (("resources.json", resources), ("authorization.json", permissions)):
        write_atomically(folder / name, (json.dumps(content, indent=2) + "\n").encode())


def write_job(folder: Path, name: str, minimum_sites: int) -> Path:
    """Write the job to submit: two class names and no code."""
    configuration = folder / "app" / "config"
    make_folder(configuration)
    meta = {
        "name": name,
        "resource_spec": {},
        "min_clients": minimum_sites,
        "deploy_map": {"app": ["@ALL"]},
    }
    server = {"format_version": 2, "workflows": [{"id": "fedkge", "path": CONTROLLER, "args": {}}], "components": []}
    client = {
        "format_version": 2,
        "executors": [{"tasks": ["fedkge"], "executor": {"path": EXECUTOR, "args": {}}}],
        "components": [],
    }
    for path, content in (
        (folder / "meta.json", meta),
        (configuration / "config_fed_server.json", server),
        (configuration / "config_fed_client.json", client),
    ):
        write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
    return folder
