"""fedkge as a job on an NVFlare that runs already, and what a site's policy says to other jobs."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="a federation of processes needs fedkge[nvflare]")

from fedkge.deploy.console import Console
from fedkge.deploy.layout import Layout
from fedkge.deploy.processes import Child, server_command, site_command
from fedkge.deploy.provision import EXECUTOR, server_resources, site_permissions, write_job, write_local
from tests.deploy.small import deployed, small_layout, trained

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # NVFlare warns in threads of its own


@dataclass
class Installation:
    layout: Layout
    console: Console
    children: list[Child]

    def run(self, job: Path) -> None:
        number = self.console.submit(job)
        ends = time.monotonic() + 900
        while not self.console.ended(number):
            for child in self.children:
                child.watch()
            assert time.monotonic() < ends
            time.sleep(0.5)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """NVFlare's own processes, with fedkge's settings in their `local` folders; the server allows everything."""
    folder = tmp_path_factory.mktemp("native")
    layout = small_layout(folder)
    kit = layout.settings.kits / "server"
    server = {**server_resources(kit), "class_allow_list": ["*"]}
    permissions = site_permissions()
    permissions["permissions"]["lead"]["byoc"] = "any"
    write_local(kit / "local", server, permissions)
    text = layout.federation.read_text(encoding="utf-8").replace('run = "run"', 'run = "../../../run"')
    (kit / "local" / "federation.toml").write_text(text, encoding="utf-8")
    children = [Child(server_command(kit, folder / "server.log", {}), print)]
    for name, path in layout.sites.items():
        text = (
            path.read_text(encoding="utf-8")
            .replace('"../../', '"../../../../')
            .replace('run = "run"', 'run = "../../run"')
        )
        (path.parent / "kit" / "local" / "site.toml").write_text(text, encoding="utf-8")
        children.append(Child(site_command(path.parent / "kit", name, folder / f"{name}.log", {}), print))
    console = Console(layout.settings.kits / "coordinator")
    try:
        for child in children:
            child.watch()
        ends = time.monotonic() + 600
        while len(console.connected()) < 3:
            assert time.monotonic() < ends
            time.sleep(0.5)
        yield Installation(layout, console, children)
    finally:
        console.close()
        for child in children:
            child.stop()


def test_the_job_runs_and_gives_the_same_table(installation: Installation, tmp_path: Path) -> None:
    installation.run(write_job(tmp_path / "job", "native", 3))
    assert np.array_equal(deployed(installation.layout), trained(installation.layout))


def test_a_site_refuses_code_that_a_job_brings(installation: Installation, tmp_path: Path) -> None:
    job, marker = write_job(tmp_path / "job", "evil", 1), tmp_path / "was-here"
    custom = job / "app" / "custom"
    custom.mkdir()
    evil = f"""
from pathlib import Path
from fedkge.deploy.nvflare_site import SiteExecutor
Path({str(marker)!r}).touch()
class Evil(SiteExecutor):
    pass
"""
    (custom / "evil.py").write_text(evil, encoding="utf-8")
    change(job / "app" / "config" / "config_fed_client.json", "evil.Evil")
    installation.run(job)
    assert not marker.exists()


@pytest.mark.parametrize("path", ["nvflare.app_common.np.np_trainer.NPTrainer", "subprocess.Popen"])
def test_a_site_builds_no_other_class_even_if_it_is_installed(
    installation: Installation, tmp_path: Path, path: str
) -> None:
    job = write_job(tmp_path / "job", "other", 1)
    change(job / "app" / "config" / "config_fed_client.json", path)
    installation.run(job)
    logs = [log.read_text(encoding="utf-8") for log in installation.layout.federation.parent.glob("client-*.log")]
    assert all(f"{path!r} at config path" in log or f"'{path}'" in log for log in logs)


def change(path: Path, executor: str) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    assert config["executors"][0]["executor"]["path"] == EXECUTOR
    config["executors"][0]["executor"]["path"] = executor
    path.write_text(json.dumps(config), encoding="utf-8")
