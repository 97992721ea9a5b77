"""What a defence draws once, between machines: a copy (recommended) or counts (noisy steps).

It stays at the site, is paid once, and serves the site's model.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("nvflare", reason="start-up kits need fedkge[nvflare]")

from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run
from fedkge.deploy.layout import Layout
from fedkge.deploy.wire import decode
from fedkge.federation.messages import Accept, Greeting, Kept, Upload
from fedkge.mechanisms.events import Geometric, Responses
from fedkge.runs.run import Run
from fedkge.store.durable_files import load_tensors
from tests.deploy.small import (
    RECOMMENDED,
    STEPS,
    InOneProcess,
    broken_off,
    deployed,
    embedded,
    small_layout,
    train_embedded,
)

Heard: TypeAlias = tuple[Layout, dict[str, list[bytes]]]

LAST_ROUND = 4
COUNTS = "counts/"
LONG = 64
"""Bytes that do not occur in a message by chance."""


@pytest.fixture(scope="module", params=[RECOMMENDED, STEPS], ids=["copy", "counts"])
def heard(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Heard:
    """A federation of three that shares every row, after its end, and all that each site sent."""
    layout = small_layout(tmp_path_factory.mktemp("heard"), request.param, training=request.param)
    sent: dict[str, list[bytes]] = {name: [] for name in layout.sites}
    with InOneProcess(layout) as federation:
        for name, site in federation.sites.items():
            site.spoil = _remembering(sent[name])
        assert federation.run() == "finished"
    return layout, sent


def _remembering(sent: list[bytes]) -> Callable[[bytes], bytes]:
    def remember(content: bytes) -> bytes:
        sent.append(content)
        return content

    return remember


@pytest.fixture(scope="module")
def twin(heard: Heard) -> Run:
    """What `fedkge.train` makes of the same graphs and options."""
    return train_embedded(heard[0])


def _run_of(layout: Layout, name: str) -> Run:
    return open_run(layout.sites[name].parent / "run")


def test_the_table_is_that_of_the_embedded_engine(heard: Heard, twin: Run) -> None:
    assert np.array_equal(deployed(heard[0]), twin.tensors["entities"])


@pytest.mark.parametrize("defence", [RECOMMENDED, STEPS], ids=["copy", "counts"])
def test_rows_of_one_owner_stay_and_the_table_is_still_that_of_the_embedded_engine(
    tmp_path: Path, defence: Mapping[str, Any]
) -> None:
    layout = small_layout(tmp_path, defence, owners=2, training=defence)
    with InOneProcess(layout) as federation:
        federation.run()
    assert np.array_equal(deployed(layout), embedded(layout))


def test_a_site_ranks_with_its_counts_as_the_embedded_engine_does(heard: Heard, twin: Run) -> None:
    """The same ranks, so the counts are the same too and stand beside the right names."""
    for name in heard[0].sites:
        run = _run_of(heard[0], name)
        assert run.prior("client-0") is not None
        own = run.evaluate("test")["client-0"].metrics()
        assert own == pytest.approx(twin.evaluate("test", as_a_client=True)[name].metrics())
        vectors = {key: array for key, array in run.tensors.items() if not key.startswith(COUNTS)}
        assert own != replace(run, tensors=vectors).evaluate("test")["client-0"].metrics()


def test_no_message_to_the_server_carries_what_was_released_once(heard: Heard) -> None:
    layout, sent = heard
    for name, contents in sent.items():
        greeting, *later = (message for content in contents if not isinstance(message := decode(content), Accept))
        assert isinstance(greeting, Greeting)
        assert {type(message) for message in later} == {Upload, Kept}
        for upload in (message for message in later if isinstance(message, Upload)):
            assert {kind: len(rows) for kind, rows in upload.rows.items()} == {
                "entities": len(greeting.names["entities"])
            }
            assert upload.loss is None
        kept = _kept_at(layout, name)
        assert kept
        assert not any(array.tobytes() in content for array in kept.values() for content in contents)


def test_answers_of_a_copy_stay_in_the_sites_checkpoint_and_its_model_has_the_counts(heard: Heard) -> None:
    layout, _ = heard
    copied = getattr(layout.settings.configuration.privacy, "copy_share", 0) > 0
    for name in layout.sites:
        assert ("cells" in _kept_at(layout, name)) == copied
        model = _run_of(layout, name).tensors
        assert len(model.get(f"{COUNTS}client-0/cells", ())) == 0


def _kept_at(layout: Layout, name: str) -> dict[str, NDArray[Any]]:
    """What a site has drawn once, as its files keep it, without arrays too short to be looked for."""
    found: dict[str, NDArray[Any]] = {}
    for path in (layout.sites[name].parent / "run").rglob("*.safetensors"):
        tensors = load_tensors(path)[0]
        found |= {
            key.rpartition("/")[2]: array
            for key, array in tensors.items()
            if key.startswith(COUNTS) and array.nbytes > LONG
        }
    return found


def test_the_server_keeps_nothing_of_it(heard: Heard) -> None:
    kept = [path.read_bytes() for path in heard[0].settings.run.rglob("*.safetensors")]
    assert kept
    assert not any(COUNTS.encode() in content for content in kept)


def test_it_is_charged_once_and_within_the_budget(heard: Heard, twin: Run) -> None:
    for name, path in heard[0].sites.items():
        _check_charged_once(path.parent / "run" / "ledger.jsonl", name)
        ledger = Ledger.read(path.parent / "run" / "ledger.jsonl")
        assert ledger.spent(name) == pytest.approx(twin.epsilon()[name])
        assert ledger.spent(name) <= RECOMMENDED["epsilon"]


def _check_charged_once(path: Path, name: str) -> None:
    first, *later = Ledger.read(path).by_round(name)
    assert [entry.round for entry in (first, *later)] == list(range(1, LAST_ROUND + 1))
    steps = {charge.event for entry in later for charge in entry.charges}
    once = {type(charge.event) for charge in first.charges if charge.event not in steps}
    assert once == ({Geometric} if steps else {Geometric, Responses}), "the first round pays for what is drawn once"
    assert all(set(entry.charges) == set(later[0].charges) for entry in later)


@pytest.mark.parametrize(
    ("defence", "call"), [(RECOMMENDED, 3), (RECOMMENDED, 4), (RECOMMENDED, 5), (STEPS, 3), (STEPS, 5)]
)
def test_a_crash_draws_and_charges_nothing_a_second_time(tmp_path: Path, defence: Mapping[str, Any], call: int) -> None:
    """Before the first upload leaves (the call after invitation, greeting and shares), and later."""
    layout = small_layout(tmp_path, defence, owners=2, training=defence)
    broken_off(layout, "client-1", call)
    with InOneProcess(layout) as federation:
        assert federation.run() == "finished"
    assert np.array_equal(deployed(layout), embedded(layout))
    for name, path in layout.sites.items():
        _check_charged_once(path.parent / "run" / "ledger.jsonl", name)
        assert _run_of(layout, name).prior("client-0") is not None
