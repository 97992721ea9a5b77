"""Sites that release names by a threshold: only released names get pseudonyms, and the run can be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fedkge as fk
from fedkge.accounting.ledger import Ledger
from fedkge.api.training import open_run
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.gathering import gather
from fedkge.deploy.greetings import Greetings
from fedkge.deploy.joint_alignment_rounds import pseudonyms_of
from fedkge.deploy.keys import read_key
from fedkge.deploy.site_settings import read_site
from fedkge.graph import Graph
from fedkge.graph.split import Shards, summarise
from fedkge.mechanisms.events import Names, Size
from fedkge.runs.directory import RunDirectory
from tests.deploy.small import InOneProcess, small_layout

PRIVACY = {"defence": "recommended", "epsilon": 16.0}


def data() -> Shards:
    """Three clients that share twenty names; each has names that one triple alone mentions."""
    graphs = []
    for number in range(3):
        drawn = np.random.default_rng(number).integers(0, (20, 3, 20), (600, 3)).tolist()
        often = sorted({(f"e{h}", f"r{r}", f"e{t}") for h, r, t in drawn})
        train = [*often[::2], *often[1::4], *((f"secret{number}-{i}", "r0", f"e{i}") for i in range(9))]
        graphs.append(Graph.from_names(f"client-{number}", train=train, test=often[3::4]))
    return Shards("three", tuple(graphs), summarise(graphs))


@pytest.mark.parametrize("alignment", ["keyed", "joint"])
def test_only_released_names_get_pseudonyms_and_the_run_can_be_used(tmp_path: Path, alignment: str) -> None:
    options = {"entities": "threshold", "alignment": alignment}
    layout = small_layout(tmp_path, PRIVACY, training=PRIVACY, data=data(), **options)
    for _ in range(2):  # the second time nothing is drawn and nothing is charged
        with InOneProcess(layout) as federation:
            assert federation.run() == "finished"
    greetings = Greetings(layout.settings.run / "checkpoints" / "greetings").all()
    for name, path in layout.sites.items():
        site = read_site(path)
        ledger = Ledger.read(site.run / "ledger.jsonl")
        assert [type(once.charges[0].event) for once in ledger.once(name).values()] == [Size, Names]
        assert 15.5 < ledger.spent(name) <= 16.0
        run = open_run(site.run)
        assert list(run.shards[0].entities) == sorted(f"e{i}" for i in range(20)), "not in the order of the file"
        pseudonymise = pseudonyms_of(site, read_key(site.key))
        assert pseudonymise is not None
        told = set(greetings[name].names["entities"])
        assert told == set(pseudonymise("entities", [f"e{i}" for i in range(20)]))
        assert run.evaluate("test")["client-0"].metrics()["both.realistic.mrr"] > 0
        assert not any("secret" in entity for entity in run.entities)


def test_a_gathered_run_has_the_released_names(tmp_path: Path) -> None:
    layout = small_layout(tmp_path / "all", PRIVACY, training=PRIVACY, data=data(), entities="threshold")
    with InOneProcess(layout) as federation:
        federation.run()
    sites = [read_site(path) for path in layout.sites.values()]
    out = gather(read_federation(layout.federation), sites, tmp_path / "gathered")
    run = fk.open_run(out)
    assert len(run.entities) == 20
    assert {name: round(spent) for name, spent in run.epsilon().items()} == dict.fromkeys(run.clients, 16)
    charges = Ledger.read(RunDirectory(out).ledger).charges("client-1")
    assert {Size, Names} <= {type(charge.event) for charge in charges}
