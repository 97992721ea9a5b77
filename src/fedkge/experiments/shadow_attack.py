"""The shadow attack on a recorded run: measure its real targets, and compare with shadow federations of other coins."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from fedkge.attacks.shadow import Numbers, check_shadows, shadow_scores
from fedkge.experiments.shadow_features import measure
from fedkge.experiments.shadows import ShadowPlan, cast_shadows
from fedkge.experiments.targets import Targets
from fedkge.runs.run import Run
from fedkge.store.durable_files import raw_bytes

SHADOW = "shadow"
"""The attack's name; its variants (`fedkge.experiments.shadow_features`) are reported apart."""
SHADOWS = ShadowPlan(SHADOW, count=2)
"""A target is in one of two shadows and out of the other. More of them teach its own level better."""
NEEDS_REAL = (
    "attack 'shadow' works on real triples, each in or out by a coin: train with --canaries 3000 --canary-source real "
    "--record every:5, and attack with --targets R"
)


def attack_by_shadows(
    run: Run, targets: Targets, plan: ShadowPlan = SHADOWS, advance: Callable[[int, int], None] = lambda *_: None
) -> dict[str, Numbers]:
    """By variant one score for every target, calibration among them, higher for "in".

    The adversary knows the targets but not their coins, all other data, and the configuration without its seeds. It
    trains `plan.count` shadow federations, in pairs with opposite coins. Of the attacked run it reads only what its
    variant sees.
    """
    check_shadows(plan.count)
    key = f"{SHADOW}-{run.configuration.digest}-{zlib.crc32(raw_bytes(targets.everything)):08x}"
    observed = measure(run, targets)
    shadows, coins = cast_shadows(run, targets, key, measure, plan, advance)
    return {name: shadow_scores(features, shadows[name], coins) for name, features in observed.items()}
