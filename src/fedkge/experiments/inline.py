"""CIA within the running federation: the adversary's client really uploads reversed rows, which costs utility too.

Each attacking round reverses the tails of one group of canaries. In the waiting rounds that follow, the adversary
sends the group's rows back as it received them, so only the other clients move them. All other rows are honest. CIA
compares two scores: of the rows received right after the reversal, and of those received after the waiting rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.cia import disjoint_groups, reverse_tails, score_targets
from fedkge.base.errors import ConfigurationError, RunError
from fedkge.configuration import Configuration
from fedkge.experiments.targets import Targets
from fedkge.federation.client import Client
from fedkge.federation.messages import ClientLogic, Fit, Reply, Request, Upload
from fedkge.graph import HEAD, TAIL, Graph, Triples, Vocabulary
from fedkge.models import Embedding, Tables
from fedkge.runs.strategies import strategy_of
from fedkge.store.durable_files import load_tensors, save_tensors

STATE = "inline-cia.safetensors"
WAITING_ROUNDS = 2
PERIOD = WAITING_ROUNDS + 1
"""Rounds from one attacking round to the next."""

StandIn = Callable[[Client], ClientLogic]


def check_inline(configuration: Configuration) -> None:
    """Refuse an in-line attack that could not be carried out."""
    if configuration.experiment.inline_attack == "none":
        return
    needed = {
        "canaries to attack: set --canaries 1000": configuration.experiment.canaries > 0,
        "shared entities: set --strategy fede": strategy_of(configuration).exchanges_entities,
        "the adversary in every round: set --fraction 1": configuration.federation.fraction == 1.0,
        f"at least {PERIOD + 1} rounds: set --rounds higher": configuration.training.rounds > PERIOD,
    }
    for what, fulfilled in needed.items():
        if not fulfilled:
            raise ConfigurationError(f"an in-line attack needs {what}, or leave --inline-attack out")


def periods(rounds: int) -> int:
    """How many groups can be attacked, and scored again, within so many rounds.

    >>> periods(20)
    6
    """
    return (rounds - 1) // PERIOD


def schedule(targets: Triples, count: int) -> list[NDArray[np.int64]]:
    """Indices of the targets in at most `count` groups; groups are joined if disjoint groups would be more.

    >>> [group.tolist() for group in schedule(np.array([[0, 0, 1], [1, 0, 2], [3, 0, 4]], np.int32), 2)]
    [[0, 2], [1]]
    """
    groups = list(disjoint_groups(targets, -(-len(targets) // count)))
    return [np.concatenate(groups[place::count]) for place in range(min(count, len(groups)))]


class InlineCIA:
    """The adversary's client in the federation: honest except for the rows of the group under attack.

    It saves its state in `path` before each upload, so that a resumed run continues the attack.
    """

    def __init__(self, client: Client, targets: Triples, rounds: int, path: Path) -> None:
        self._client, self._targets, self._rounds, self._path = client, targets, rounds, path
        self._groups = schedule(targets, periods(rounds))
        self._scores = np.full((2, len(targets)), np.nan)
        self._relations = np.stack([client.embedding.tables.relations] * 2)  # of even and of odd periods
        if path.exists():
            kept, facts = load_tensors(path)
            if facts["rounds"] != rounds:
                raise RunError(f"{path}: the attack was planned for {facts['rounds']} rounds, got {rounds}: start anew")
            self._scores, self._relations = kept["scores"].copy(), kept["relations"].copy()

    def handle(self, request: Request) -> Reply:
        """Answer as the client does, but score the rows that came, and change the rows that go."""
        if not isinstance(request, Fit):
            return self._client.handle(request)
        period, step = divmod(request.round - 1, PERIOD)
        if step == 1:
            self._score_received(request, period, 0)
        if step == 0 and period > 0:
            self._score_received(request, period - 1, 1)
        reply = self._client.handle(request)
        if isinstance(reply, Upload) and period < len(self._groups):
            reply = self._changed(request, reply, period, reversing=step == 0)
        save_tensors(self._path, {"scores": self._scores, "relations": self._relations}, {"rounds": self._rounds})
        return reply

    def _score_received(self, request: Fit, period: int, moment: int) -> None:
        if period >= len(self._groups):
            return
        group, own = self._groups[period], self._client.embedding
        model = Embedding(own.scorer, Tables(own.tables.entities, self._relations[period % 2]), own.margin)
        self._scores[moment, group] = score_targets(model, request.rows["entities"], self._targets[group])

    def _changed(self, request: Fit, reply: Upload, period: int, reversing: bool) -> Upload:
        rows, targets = reply.rows["entities"].copy(), self._targets[self._groups[period]]
        if reversing:
            # Kept until the last score of this group: a round that is repeated after a crash needs the group before it.
            self._relations[period % 2] = self._client.embedding.tables.relations
            reverse_tails(self._client.embedding, rows, targets)
        else:
            held = np.unique(targets[:, [HEAD, TAIL]])
            rows[held] = request.rows["entities"][held]
        return replace(reply, rows={**reply.rows, "entities": rows})


def stand_ins(
    configuration: Configuration, canaries: Targets | None, shards: tuple[Graph, ...], folder: Path | None
) -> StandIn:
    """What takes part for each client: the client itself, or the attack in place of the adversary's client."""
    if configuration.experiment.inline_attack == "none":
        return lambda client: client
    if canaries is None or folder is None:
        raise ConfigurationError("an in-line attack needs canaries and a run directory: set --canaries and --out")
    entities = Vocabulary.union([shard.entities for shard in shards])
    relations = Vocabulary.union([shard.relations for shard in shards])

    def stand_in(client: Client) -> ClientLogic:
        if client.name != configuration.experiment.adversary:
            return client
        own = _own_ids(canaries.everything, client.shard, entities, relations)
        return InlineCIA(client, own, configuration.training.rounds, folder / STATE)

    return stand_in


def _own_ids(triples: Triples, shard: Graph, entities: Vocabulary, relations: Vocabulary) -> Triples:
    """The run's triples with the client's own numbers."""
    local = [
        (shard.entities.id_of(entities[h]), shard.relations.id_of(relations[r]), shard.entities.id_of(entities[t]))
        for h, r, t in triples.tolist()
    ]
    return np.array(local, dtype=np.int32).reshape(-1, 3)


def inline_gain(folder: Path) -> NDArray[np.float64]:
    """How much the score of each canary rose again after its reversal; the lowest value if it was never attacked."""
    if not (folder / STATE).exists():
        raise RunError(f"{folder}: this run has no in-line attack; train with --inline-attack cia")
    scores = load_tensors(folder / STATE)[0]["scores"]
    gain: NDArray[np.float64] = scores[1] - scores[0]
    if np.isnan(gain).all():
        raise RunError(f"{folder}: the in-line attack has not finished any group; train more rounds")
    return np.where(np.isnan(gain), np.nanmin(gain), gain)
