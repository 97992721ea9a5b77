"""Settings of a reproduction that takes seconds: a piece of the demo graph, few rounds, few canaries."""

from __future__ import annotations

from pathlib import Path

FEDERATIONS = """
seeds = [3, 4]
entities = 250

[all]
clients = 3
split = "entity"
overlap = 0.6
evaluate-every = 0
canaries = 40
dimension = 8

[published.all]
batch-size = 64
negatives = 8
[published.none]
rounds = 4
local-epochs = 2
record = "all"
learning-rate = 0.02
[published.dpsgd]
protocol = "crossing"
selection = "dense-published"
noise = 1.0
rounds = 3
local-epochs = 1
negatives = 2
[published.dp-flames]
protocol = "crossing"
selection = "ptr-published"
noise = 1.0
rounds = 3
local-epochs = 1
batch-size = 16
test-failure = 1e-8

[sound.none]
canaries = 0
rounds = 2
local-epochs = 1
negatives = 8
[sound.recommended]
protocol = "calibrated"
dimension = 8
batch-size = 256
rounds = 3
local-epochs = 1
record = "3"
[sound.dp-flames-adaptive]
protocol = "crossing"
noise = 3.0
noise-decay = 0.7
rounds = 6
local-epochs = 1
batch-size = 128
negatives = 8

[quick.published.none]
rounds = 2
"""

ATTACKS = """
data = ["demo"]
models = ["transe", "distmult"]
[attacks]
families = { si = ["si-published", "si-centres"], cip = ["cip-published", "cip"], cia = ["cia-published", "cia"] }
ours = ["upload-difference"]
last-round-only = ["si-published"]
designs = ["B", "C"]
every = 2
cia-every = 4
cia-group-size = 40
cia-waiting-rounds = 1
[paper.demo]
cip = { transe = 0.7, distmult = 0.8 }
cia = { transe = 0.9, distmult = 0.75 }
si = { transe = 0.88 }
"""

UTILITY = """
data = ["demo"]
models = ["transe", "distmult"]
budgets = [4]
published = ["none", "dpsgd", "dp-flames"]
sound = ["none", "dp-flames-adaptive", "recommended"]
seeds = ["none"]
[first]
demo = ["none", "recommended", "dpsgd", "dp-flames"]
[paper.demo.none]
transe = [0.3606, 0.2582, 0.572]
distmult = [0.3138, 0.2345, 0.4718]
[paper.demo.dpsgd-4]
transe = [0.1296, 0.0492, 0.2524]
distmult = [0.0069, 0.006, 0.0074]
"""

DEFENCE = """
data = ["demo"]
models = ["transe"]
budgets = [2, 8]
published = ["dpsgd", "dp-flames"]
sound = ["dp-flames-adaptive", "recommended"]
[attacks]
passive = ["si-centres", "cip"]
active = ["cia"]
designs = ["C"]
cia-group-size = 40
cia-waiting-rounds = 1
[paper]
mean-f1-before = 0.831
mean-f1-after = 0.594
"""

FILES = {
    "federations": FEDERATIONS,
    "table-attacks": ATTACKS,
    "table-utility": UTILITY,
    "figure-rounds": 'data = ["demo"]\nmodels = ["transe"]\n',
    "figure-defence": DEFENCE,
    "figure-tradeoff": 'data = ["demo"]\nmodels = ["transe"]\nbudgets = [2, 8]\n',
}


def write_tiny(folder: Path) -> Path:
    """The settings as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / f"{name}.toml").write_text(text)
    return folder
