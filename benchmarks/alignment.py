"""What it costs to align 14,541 names of each of three sites: under a shared key, and jointly (Diffie-Hellman)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from benchmarks.report import save, show, spread
from fedkge.deploy.alignment import UnionIndex, confirmed, ownership_tags, pseudonyms
from fedkge.deploy.canonical import Rules, canonical_names
from fedkge.deploy.group import POINT_BYTES, fresh_scalar
from fedkge.deploy.joint_alignment import Party, Ring, go_round
from fedkge.deploy.keys import Key

NAMES, SITES = 14_541, ("north", "east", "south")


def names_of(count: int) -> dict[str, list[str]]:
    """Names like those of a real graph; each site has a third of its own, the rest in common."""
    common, own = count - count // 3, count // 3
    return {
        site: [f"http://ontology.example/term/{number:07d}" for number in range(common)]
        + [f"http://{site}.example/record/{number:07d}" for number in range(own)]
        for site in SITES
    }


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def keyed(names: dict[str, list[str]]) -> dict[str, float]:
    """CPU-seconds of all three sites and of the server, step by step."""
    key, lists, tags = Key.fresh(), dict[str, list[str]](), dict[str, bytes]()

    def pseudonymise() -> None:
        lists.update({site: sorted(pseudonyms(key, "study", "entities", own)) for site, own in names.items()})

    def vouch() -> None:
        tags.update({site: ownership_tags(key, "study", site, own) for site, own in lists.items()})

    def unite() -> None:
        found.append(UnionIndex.of(lists))
        evidence.update({site: found[0].evidence(site, tags) for site in lists})

    def confirm() -> None:
        for site, own in lists.items():
            shared = confirmed(key, "study", site, own, evidence[site])
            assert shared.tolist() == found[0].shared(site).tolist()

    found: list[UnionIndex] = []
    evidence: dict[str, Any] = {}
    rules = Rules("NFC", "fold", {"http://ontology.example/term/": "term:"})
    return {
        "canonical names": cpu_seconds(lambda: [canonical_names(own, rules) for own in names.values()]),
        "pseudonyms": cpu_seconds(pseudonymise),
        "tags of ownership": cpu_seconds(vouch),
        "index and evidence": cpu_seconds(unite),
        "tags checked": cpu_seconds(confirm),
    }


def joint(names: dict[str, list[str]]) -> float:
    """CPU-seconds of all three sites."""
    ring, key = Ring("study", SITES), Key.fresh()
    parties = {site: Party(site, ring, key, fresh_scalar()) for site in SITES}
    made: dict[str, Any] = {}
    seconds = cpu_seconds(lambda: made.update(go_round(parties, ring, "entities", names)))
    everything = {name for own in names.values() for name in own}
    assert len({pseudonym for own in made.values() for pseudonym in own.values()}) == len(everything)
    return seconds


def main(arguments: list[str]) -> int:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks alignment", description=__doc__)
    parser.add_argument("--names", type=int, default=NAMES, help="names of each site")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args(arguments)
    names = names_of(options.names)
    keyed_times = [keyed(names) for _ in range(options.repeats)]
    joint_times = [joint(names) for _ in range(options.repeats)]
    result: dict[str, Any] = {
        "names_per_site": options.names,
        "sites": len(SITES),
        "keyed_cpu_seconds": {step: spread([times[step] for times in keyed_times]) for step in keyed_times[0]},
        "joint_cpu_seconds": spread(joint_times),
        "joint_bytes_sent_in_all": len(SITES) ** 2 * (options.names + 1) * POINT_BYTES,
    }
    rows = [(f"keyed: {step}", f"{times['median']:.3f}") for step, times in result["keyed_cpu_seconds"].items()]
    rows += [("joint: all of it", f"{result['joint_cpu_seconds']['median']:.1f}")]
    show(f"Alignment of {options.names:,} names at each of {len(SITES)} sites", ("step", "CPU-seconds of all"), rows)
    if not options.no_save:
        save("alignment", result)
    return 0
