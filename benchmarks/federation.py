"""What a round costs beyond local training: sites as processes over NVFlare, beside the embedded engine, in turns.

`small` is 3 sites that all own 14,541 rows; `large` a table of 1,000,000 rows of which each site owns 400,000; every
row is 128 wide. `half` is what float16 on the wire does to MRR.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.report import load_average, save, show, spread
from fedkge.accounting.ledger import Ledger
from fedkge.cli.demo import SETTINGS
from fedkge.defences import parse
from fedkge.defences.planning import client_defence
from fedkge.deploy.keys import read_key
from fedkge.deploy.layout import Layout, lay_out
from fedkge.deploy.policy import accept, proposal
from fedkge.deploy.site_graph import canonical_site, keyed, raw_graph, site_graph
from fedkge.deploy.site_settings import read_site
from fedkge.deploy.trial import COMMAND
from fedkge.deploy.wire import Numbers, as_reply, as_request, decode, encode
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.embedded import EmbeddedEngine
from fedkge.federation.messages import ClientLogic, Reply, Request
from fedkge.federation.server import Server, ServerPlan
from fedkge.federation.training import Federation
from fedkge.graph import Graph
from fedkge.graph.datasets import load
from fedkge.graph.shards import summarise
from fedkge.graph.split import Shards, split
from fedkge.runs.directory import RunDirectory
from fedkge.runs.run import shape_of

WIDTH, SITES, SEED = 128, 3, 7
SEEDS = (7, 8, 9, 10, 11)
TOOK = re.compile(r"round (\d+) took ([0-9.]+) seconds here")
NUMBERS: tuple[Numbers, ...] = ("float32", "float16")
HALVED: dict[str, dict[str, Any]] = {
    "demo": {**SETTINGS, "data": "demo"},
    "demo, noisy steps at epsilon 8": {"data": "demo", "defence": "noisy-steps", "epsilon": 8.0, "rounds": 20},
    "fb15k-237": {**SETTINGS, "data": "fb15k-237", "rounds": 10},
}
"""Federations of three whose rows are rounded on the wire, and not."""

CASES = {"small": (14_541, 14_541, 14_541), "large": (1_000_000, 400_000, 300_000)}
"""Rows of the union, rows of a site, and how far the sites' rows lie apart."""


def names_of(case: str, site: int) -> list[str]:
    """A site's names: for `small` all of them, for `large` a window of the union that overlaps its neighbour's."""
    union, own, step = CASES[case]
    begin = 0 if own == union else site * step
    return [f"entity {number}" for number in range(begin, begin + own)]


def graph_of(names: Sequence[str], site: int) -> Graph:
    """Few triples: what is measured is not training."""
    random = np.random.default_rng(site)
    ends = random.choice(len(names), size=(200, 2))
    triples = [(names[head], "relation", names[tail]) for head, tail in ends.tolist() if head != tail]
    return Graph.from_names(f"client-{site}", train=triples)


def lay(folder: Path, case: str, rounds: int) -> Layout:
    lists = [names_of(case, site) for site in range(SITES)]
    graphs = [graph_of(names, site) for site, names in enumerate(lists)]
    training = {"dimension": WIDTH, "rounds": rounds, "local_steps": 1, "negatives": 1, "seed": SEED}
    more = {"seed": SEED, "threads": 1, "entities": "names.txt"}
    shards = Shards(case, tuple(graphs), summarise(graphs))
    layout = lay_out(folder, shards, training, {"defence": "none"}, site=more, owners=1)
    for names, path in zip(lists, layout.sites.values(), strict=True):
        (path.parent / "names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    return layout


class Timed:
    """A client that remembers how long it took for each round."""

    def __init__(self, client: ClientLogic) -> None:
        self._client = client
        self.seconds: list[float] = []

    def handle(self, request: Request) -> Reply:
        began = time.perf_counter()
        reply = self._client.handle(request)
        if type(request).__name__ == "Fit":
            self.seconds.append(time.perf_counter() - began)
        return reply


def clients_of(layout: Layout, folder: Path) -> dict[str, Client]:
    configuration, clients = layout.settings.configuration, {}
    for name, path in layout.sites.items():
        site, ledger = read_site(path), Ledger.in_memory()
        options = accept(proposal(configuration), site)
        graph = site_graph(canonical_site(site, raw_graph(site)), keyed(read_key(site.key), site.federation)).graph
        defence = client_defence(options, name, graph, ledger, site.number)
        plan = ClientPlan(options, options.experiment.seed or 0, site.number, ("entities",), 1, defence, ledger)
        clients[name] = Client(name, graph, plan, folder)
    return clients


def embedded(layout: Layout, folder: Path) -> list[float]:
    """Seconds per round beyond the slowest client's own; clients keep their state on disk, as sites do."""
    folder.mkdir()
    timed = {name: Timed(client) for name, client in clients_of(layout, folder).items()}
    configuration = layout.settings.configuration
    server = Server(EmbeddedEngine(timed, threads=SITES), ServerPlan(shape_of(configuration), SEED))
    beyond = []
    for number in range(configuration.training.rounds):
        began = time.perf_counter()
        server.run_round()
        beyond.append(time.perf_counter() - began - max(client.seconds[number] for client in timed.values()))
    shutil.rmtree(folder)
    return beyond


def deployed(layout: Layout) -> dict[str, Any]:
    """The same with a process for every party; the server's seconds less those of the slowest site."""
    began = time.perf_counter()
    commands = [["server", str(layout.federation)], *(["client", str(path)] for path in layout.sites.values())]
    parties = [subprocess.Popen([sys.executable, "-c", COMMAND, *command]) for command in commands]
    try:
        codes = [party.wait(3600) for party in parties]
    finally:
        for party in parties:
            if party.poll() is None:
                party.terminate()
    assert codes == [0] * len(parties), codes
    total = time.perf_counter() - began
    logs = [(path.parent / "run" / "nvflare.log").read_text(encoding="utf-8") for path in layout.sites.values()]
    own = [{int(number): float(seconds) for number, seconds in TOOK.findall(log)} for log in logs]
    history = RunDirectory(layout.settings.run).read_metrics()
    beyond = [line["seconds"] - max(times[line["round"]] for times in own) for line in history]
    return {"beyond": beyond, "total": total}


def measure(case: str, rounds: int, repeats: int, folder: Path) -> dict[str, Any]:
    found: dict[str, list[float]] = {"embedded": [], "nvflare": [], "whole": [], "ratio": [], "load": []}
    for repeat in range(repeats):
        layout = lay(folder / f"{case}-{repeat}", case, rounds)
        found["load"].append(load_average())
        beside = embedded(layout, folder / "state")
        result = deployed(layout)
        found["embedded"] += beside
        found["ratio"].append(median(result["beyond"]) / median(beside))
        found["nvflare"] += result["beyond"]
        found["whole"].append(result["total"])
        shutil.rmtree(folder / f"{case}-{repeat}")
    _, own, _ = CASES[case]
    return {
        "rows_of_a_site": own,
        "rows_of_the_union": CASES[case][0],
        "megabytes_each_way_and_site": own * WIDTH * 4 / 1e6,
        "rounds": rounds * repeats,
        "embedded_seconds_per_round": spread(found["embedded"]),
        "nvflare_seconds_per_round": spread(found["nvflare"]),
        "nvflare_over_embedded": spread(found["ratio"]),
        "nvflare_seconds_from_start_to_end": spread(found["whole"]),
        "load_before": found["load"],
    }


class Rounded:
    """A client whose messages go through the wire format."""

    def __init__(self, client: ClientLogic, numbers: Numbers) -> None:
        self._client, self._numbers = client, numbers

    def handle(self, request: Request) -> Reply:
        heard = as_request(decode(encode(request, self._numbers)))
        reply: Any = as_reply(decode(encode(self._client.handle(heard), self._numbers)))
        return reply  # type: ignore[no-any-return]


def half() -> dict[str, Any]:
    """What float16 on the wire does to test MRR and Hits@10, both sides: the same federation, seed by seed."""
    found: dict[str, Any] = {}
    for name, options in HALVED.items():
        shards = split(load(str(options["data"])), SITES, "entity", SEED)
        runs = {
            numbers: [trained_over(numbers, shards, {**options, "seed": seed}) for seed in SEEDS] for numbers in NUMBERS
        }
        found[name] = {"options": options, "seeds": SEEDS}
        for metric in ("mrr", "hits_at_10"):
            values = {numbers: [run[metric] for run in each] for numbers, each in runs.items()}
            change = [half - whole for whole, half in zip(values["float32"], values["float16"], strict=True)]
            both: dict[str, Any] = {numbers: spread(each) for numbers, each in values.items()}
            found[name][metric] = {**both, "change": spread(change)}
    return found


def trained_over(numbers: Numbers, shards: Shards, options: Mapping[str, Any]) -> dict[str, float]:
    """Test metrics of a federation whose messages carry rows as `numbers`."""
    configuration = parse(
        {**options, "clients": SITES, "noise-seed": options["seed"] if "epsilon" in options else None}
    )
    run = Federation(shards.graphs, configuration, stand_in=lambda client: Rounded(client, numbers)).run()
    return {metric: run.metrics[-1][f"both.realistic.{metric}"] for metric in ("mrr", "hits_at_10")}


def main(arguments: list[str]) -> int:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks federation", description=__doc__)
    parser.add_argument("--cases", default="small,large,half")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases.split(","):
            result[case] = half() if case == "half" else measure(case, options.rounds, options.repeats, Path(folder))
    show(
        "Seconds per round beyond local training", ("case", "MB each way", "embedded", "NVFlare", "ratio"), rows(result)
    )
    show(
        "Test MRR, both sides",
        ("federation", "float32", "float16", "change by seed"),
        half_rows(result.get("half", {})),
    )
    if not options.no_save:
        save("federation", result)
    return 0


def rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            case,
            f"{facts['megabytes_each_way_and_site']:.0f}",
            f"{facts['embedded_seconds_per_round']['median']:.3f}",
            f"{facts['nvflare_seconds_per_round']['median']:.2f}",
            f"{facts['nvflare_over_embedded']['median']:.1f}",
        )
        for case, facts in result.items()
        if case != "half"
    ]


def half_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            *(f"{facts['mrr'][numbers]['median']:.4f}" for numbers in NUMBERS),
            ", ".join(f"{change:+.4f}" for change in facts["mrr"]["change"]["repeats"]),
        )
        for name, facts in found.items()
    ]
