"""What watches over NVFlare's processes: jobs that fail are not repeated for ever, a site leaves when it may."""

from pathlib import Path
from typing import Any

import pytest

from fedkge.deploy import attend, serve
from fedkge.deploy.attend import Attendant
from fedkge.deploy.layout import Layout
from fedkge.deploy.serve import MOST_FAILURES, Supervisor
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.status import Status
from fedkge.errors import RunError
from tests.deploy.small import small_layout


class Still:
    """In the place of NVFlare's process."""

    def watch(self) -> None:
        return

    def stop(self) -> None:
        return


class Console:
    """Everybody is connected, and every job leaves the same status behind."""

    def __init__(self, layout: Layout, state: str) -> None:
        self._layout, self._state, self.jobs = layout, state, 0

    def connected(self) -> list[str]:
        return list(self._layout.sites)

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
    monkeypatch.setattr(serve, "write_local", lambda *_: None)
    monkeypatch.setattr(serve, "FAILURE_SECONDS", 0.0)
    monkeypatch.setattr(serve, "server_resources", lambda *_: {})
    return small_layout(tmp_path)


@pytest.mark.parametrize("state", ["failed", "starting", "inviting", "aligning", "training"])
def test_jobs_that_get_nowhere_are_not_repeated_for_ever(layout: Layout, state: str) -> None:
    supervisor = Supervisor(layout.federation, layout.settings, lambda _: None)
    console = Console(layout, state)
    supervisor._child, supervisor._console = Still(), console  # type: ignore[assignment]
    with pytest.raises(RunError, match="in a row"):
        supervisor.run()
    assert console.jobs == MOST_FAILURES


def attendant(layout: Layout) -> tuple[Attendant, Status]:
    path = layout.sites["client-0"]
    settings = read_site(path)
    found = Attendant(path, settings, lambda _: None)
    found._child = Still()  # type: ignore[assignment]
    return found, Status(settings.run)


def test_a_site_with_the_model_leaves_though_nobody_hears_of_it(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attend, "FAREWELL_SECONDS", 0.0)
    found, status = attendant(layout)
    steps = iter([{"state": "training"}, {"state": "has the model", "round": 3}])
    monkeypatch.setattr(attend.time, "sleep", lambda _: status.write(**next(steps, {"state": "has the model"})))
    assert found.run()["state"] == "has the model"


def test_a_site_that_is_asked_again_stays(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it had the model once, before it was started again, does not make it leave in the middle of a job."""
    monkeypatch.setattr(attend, "RETURN_SECONDS", 0.05)
    found, status = attendant(layout)
    status.write(state="has the model", round=3)
    steps: list[dict[str, Any]] = [{"state": "training", "round": 4}] * 5 + [{"state": "finished", "round": 9}]
    left = iter(steps)
    monkeypatch.setattr(attend.time, "sleep", lambda _: status.write(**next(left)))
    assert found.run()["round"] == 9
