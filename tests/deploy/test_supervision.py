"""What watches over NVFlare's processes: jobs that fail are not repeated for ever, a site leaves when it may."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fedkge.base.errors import RunError
from fedkge.deploy import server_supervisor, site_supervisor
from fedkge.deploy.coordinator import REJOIN_FILE
from fedkge.deploy.layout import Layout
from fedkge.deploy.liveness import CLEAN_SECONDS, HEARTBEAT_SECONDS, SHORTEST_SILENCE, Liveness
from fedkge.deploy.processes import site_command
from fedkge.deploy.provision import server_resources
from fedkge.deploy.server_supervisor import MOST_FAILURES, ServerSupervisor
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.site_supervisor import SiteSupervisor
from fedkge.deploy.status import Status
from fedkge.deploy.trial import Trial
from tests.deploy.small import SEED, small_layout


class Still:
    """In the place of NVFlare's process."""

    def watch(self) -> None:
        return

    def stop(self) -> None:
        return


class Console:
    """Everybody is connected, and every job leaves the same status behind."""

    def __init__(self, layout: Layout, state: str) -> None:
        self._layout, self._state, self.jobs, self.last = layout, state, 0, 0.0

    def connected(self) -> list[str]:
        return list(self._layout.sites)

    def heard(self) -> dict[str, float]:
        return dict.fromkeys(self._layout.sites, self.last)

    def submit(self, job: Path) -> str:  # noqa: ARG002
        self.jobs += 1
        assert self.jobs < 10, "jobs without end"
        Status(self._layout.settings.run).write(state=self._state)
        return "job"

    def ended(self, job: str) -> bool:  # noqa: ARG002
        return True

    def close(self) -> None:
        return


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(server_supervisor, "write_local", lambda *_: None)
    monkeypatch.setattr(server_supervisor, "FAILURE_SECONDS", 0.0)
    monkeypatch.setattr(server_supervisor, "server_resources", lambda *_: {})
    return small_layout(tmp_path)


@pytest.mark.parametrize("state", ["failed", "starting", "inviting", "aligning", "training"])
def test_jobs_that_get_nowhere_are_not_repeated_for_ever(layout: Layout, state: str) -> None:
    supervisor = ServerSupervisor(layout.federation, layout.settings, lambda _: None)
    console = Console(layout, state)
    supervisor._child, supervisor._console = Still(), console  # type: ignore[assignment]
    with pytest.raises(RunError, match="in a row"):
        supervisor.run()
    assert console.jobs == MOST_FAILURES


def test_a_dead_site_that_nvflare_still_lists_is_not_back(layout: Layout) -> None:
    """Its last heartbeat is from before it was missed. One that comes later is from a site that lives."""
    said: list[str] = []
    supervisor = ServerSupervisor(layout.federation, layout.settings, said.append)
    console = Console(layout, "training")
    supervisor._child, supervisor._console = Still(), console  # type: ignore[assignment]
    mark = layout.settings.run / REJOIN_FILE
    status = {"state": "training", "present": ["client-0"], "refused": ["client-2"]}
    console.last = time.time()
    for _ in range(3):
        supervisor._invite_back(status)
    assert not mark.exists()
    console.last = time.time() + 1
    supervisor._invite_back(status)
    assert mark.exists()
    assert said == ["client-1 is back and joins after this round"], "nor is one that refuses to take part"


def test_a_trial_whose_party_fails_does_not_wait_for_the_others(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 2, 1, None, SEED)
    for name, code in (("server", "raise SystemExit(3)"), ("client-0", "import time; time.sleep(3600)")):
        trial._processes[name] = subprocess.Popen([sys.executable, "-c", code], text=True)
    assert trial._wait() == {"server": 3}
    trial.stop()
    assert trial._processes["client-0"].wait() != 0


@pytest.mark.parametrize("seconds", [SHORTEST_SILENCE, 60.0, 120.0, 3600.0])
def test_nvflare_gives_a_silent_site_up_before_the_job_does(tmp_path: Path, seconds: float) -> None:
    liveness = Liveness(seconds)
    server = server_resources(tmp_path, liveness)["servers"][0]
    assert server["heart_beat_timeout"] + CLEAN_SECONDS <= seconds
    command = site_command(tmp_path, "north", tmp_path / "log", {})
    assert f"heart_beat_interval={HEARTBEAT_SECONDS:g}" in command.arguments
    assert server["heart_beat_timeout"] >= 3 * HEARTBEAT_SECONDS, "one heartbeat may be late"
    assert liveness.ping_seconds <= seconds / 4


def supervisor_of(layout: Layout) -> tuple[SiteSupervisor, Status]:
    path = layout.sites["client-0"]
    settings = read_site(path)
    found = SiteSupervisor(path, settings, lambda _: None)
    found._child = Still()  # type: ignore[assignment]
    return found, Status(settings.run)


def test_a_site_with_the_model_leaves_though_nobody_hears_of_it(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_supervisor, "FAREWELL_SECONDS", 0.0)
    found, status = supervisor_of(layout)
    steps = iter([{"state": "training"}, {"state": "has the model", "round": 3}])
    monkeypatch.setattr(
        site_supervisor.time, "sleep", lambda _: status.write(**next(steps, {"state": "has the model"}))
    )
    assert found.run()["state"] == "has the model"


def test_a_site_that_is_asked_again_stays(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it had the model once, before it was started again, does not make it leave in the middle of a job."""
    monkeypatch.setattr(site_supervisor, "RETURN_SECONDS", 0.05)
    found, status = supervisor_of(layout)
    status.write(state="has the model", round=3)
    steps: list[dict[str, Any]] = [{"state": "training", "round": 4}] * 5 + [{"state": "finished", "round": 9}]
    left = iter(steps)
    monkeypatch.setattr(site_supervisor.time, "sleep", lambda _: status.write(**next(left)))
    assert found.run()["round"] == 9
