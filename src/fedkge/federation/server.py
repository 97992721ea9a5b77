"""The server: it aligns shared rows, broadcasts, collects uploads, refuses broken ones, and aggregates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fedkge.base.errors import FedkgeError, NumericalError, RunError
from fedkge.base.short_repr import short_repr
from fedkge.evaluation import weighted_metrics
from fedkge.federation.aggregation import Aggregation, Mean, covers
from fedkge.federation.claimed_weights import Index, believable_weights
from fedkge.federation.messages import (
    LARGEST_LOSS,
    NO_LIMIT,
    Engine,
    Evaluate,
    Failure,
    Fit,
    Goodbye,
    Greeting,
    Hello,
    RankingMetrics,
    Share,
    Sharing,
    Upload,
    payload_bytes,
)
from fedkge.federation.union import evidence, unite
from fedkge.federation.upload_checks import excess, misfit
from fedkge.models.embedding import initial_rows
from fedkge.models.scorer import ModelShape
from fedkge.runs.round import NOTHING, Messages, Round, Rows, Shared
from fedkge.store.randomness import server_generator


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The server's settings: how it aggregates, which clients it asks, and which uploads it accepts."""

    shape: ModelShape
    seed: int
    aggregation: Aggregation = field(default_factory=Mean)
    fraction: float = 1.0
    minimum_clients: int = 1
    largest_row_norm: float = 1000.0
    minimum_owners: int = 1
    """A row with fewer owners is not shared: there is nothing to average."""
    timeout_seconds: float = NO_LIMIT


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a client is left out of a round. `diverged`: its training diverged, so trying again does not help."""

    reason: str
    diverged: bool = False


@short_repr()
@dataclass(frozen=True, slots=True, eq=False)
class RoundReport:
    """The result of a round: uploads, refused clients with reasons, mean loss, bytes per client in both directions.

    A round without uploads, after all clients have left, did not take place.
    """

    round: int
    broadcasts: Mapping[str, Mapping[Shared, Rows]]
    uploads: Mapping[str, Upload]
    refused: Mapping[str, str]
    bytes_down: Mapping[str, int] = field(default_factory=dict)
    bytes_up: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weight of each client's loss; by default its claimed number of triples."""

    @property
    def loss(self) -> float | None:
        """The clients' last mean losses, weighted by their triples; None if no client reports one."""
        losses = [
            (self.weights.get(name, upload.triples), upload.loss)
            for name, upload in self.uploads.items()
            if upload.loss is not None
        ]
        return sum(weight * loss for weight, loss in losses) / max(1, sum(n for n, _ in losses)) if losses else None

    def messages(self, results: Messages = NOTHING, private: Messages = NOTHING) -> Round:
        """The messages of this round, for the transcript."""
        uploads = {name: upload.rows for name, upload in self.uploads.items()}
        return Round(self.round, self.broadcasts, uploads, results, private)


class Server:
    """Holds the shared tables over the union of all clients' names. It never sees triples or unshared tables.

    A row that too few clients own (`minimum_owners`) is not in the tables: it stays with its owner.
    """

    def __init__(self, engine: Engine, plan: ServerPlan, greetings: Mapping[str, Greeting] | None = None) -> None:
        self._engine = engine
        self._plan = plan
        self.round = 0
        self.gone: set[str] = set()
        """Clients that have left."""
        self.excluded: dict[str, str] = {}
        """Clients that do not agree to the shared rows, with reasons."""
        self._greetings = dict(sorted((self._greet() if greetings is None else greetings).items()))
        _refuse_unlike(self._greetings)
        self.names: dict[Shared, dict[str, int]] = {}
        self.owners: dict[Shared, dict[str, Index]] = {}
        self.tables: dict[Shared, Rows] = {}
        self._align()
        claims = {name: greeting.triples for name, greeting in self._greetings.items()}
        self.weights = believable_weights(claims, self.owners.values())
        """The weight of each client: its claimed number of triples, up to the bound of `believable_weights`."""

    @property
    def doubted(self) -> dict[str, str]:
        """Clients whose claimed number of triples does not count in full, if the aggregation uses claims."""
        if not self._plan.aggregation.uses_claims:
            return {}
        return {
            name: f"claims {greeting.triples:,} triples, far more per row than others: weighs {self.weights[name]:.0f}"
            for name, greeting in self._greetings.items()
            if self.weights[name] < greeting.triples
        }

    def _greet(self) -> dict[str, Greeting]:
        requests = {name: Hello() for name in self._engine.clients()}
        replies = self._engine.exchange(requests, timeout_seconds=self._plan.timeout_seconds)
        greetings: dict[str, Greeting] = {}
        for name in sorted(self._engine.clients()):
            reply = replies.get(name, Failure(name, "no answer"))
            if not isinstance(reply, Greeting):
                reason = reply.reason if isinstance(reply, Failure) else f"got {type(reply).__name__}, not a greeting"
                raise RunError(f"{name} did not join the federation: {reason}")
            greetings[name] = reply
        return greetings

    def _align(self) -> None:
        first = next(iter(self._greetings.values()))
        generator = server_generator(self._plan.seed, 0)
        unions = {kind: unite(self._greetings, kind, self._plan.minimum_owners) for kind in first.names}
        for kind, union in unions.items():
            self.names[kind], self.owners[kind] = dict(union.names), dict(union.owners)
            self.tables[kind] = initial_rows(len(union.names), first.widths[kind], self._plan.shape, generator)
        if self._plan.minimum_owners > 1:
            self._agree({name: {kind: unions[kind].places[name] for kind in unions} for name in self._greetings})

    def _agree(self, places: Mapping[str, Mapping[Shared, Index]]) -> None:
        """Tell each client which of its rows have enough owners, with the owners' proofs."""
        requests = {
            name: Share(places[name], evidence(self._greetings, name) if "entities" in self.names else {})
            for name in sorted(self._present())
        }
        replies = self._engine.exchange(requests, timeout_seconds=self._plan.timeout_seconds)
        for name in sorted(requests):
            reply = replies.get(name, Failure(name, "no answer"))
            expected = {kind: len(rows) for kind, rows in places[name].items()}
            if not isinstance(reply, Sharing) or dict(reply.rows) != expected:
                got = dict(reply.rows) if isinstance(reply, Sharing) else type(reply).__name__  # it may be large
                reason = reply.reason if isinstance(reply, Failure) else f"expected it to share {expected}, got {got}"
                self.excluded[name] = reason

    def rows_for(self, name: str) -> dict[Shared, Rows]:
        """The shared rows that client `name` owns, in its order: its broadcast.

        A client that owns all rows in the server's order gets the table itself. No later round changes that array.
        """
        places = {kind: owners[name] for kind, owners in self.owners.items()}
        return {
            kind: table if covers(places[kind], len(table)) else table[places[kind]]
            for kind, table in self.tables.items()
        }

    def _present(self) -> set[str]:
        return set(self._greetings).intersection(self._engine.clients()) - set(self.excluded)

    def _invited(self, round_number: int) -> list[str]:
        names = sorted(self._present() - self.gone)
        count = max(self._plan.minimum_clients, round(self._plan.fraction * len(names)), 1)
        if count >= len(names):
            return names
        chosen = server_generator(self._plan.seed, round_number).choice(len(names), size=count, replace=False)
        return [names[i] for i in sorted(chosen)]

    def run_round(self) -> RoundReport:
        """Broadcast, collect, check, aggregate. A client that fails is left out and may come back next round."""
        number = self.round + 1
        broadcasts = {name: self.rows_for(name) for name in self._invited(number)}
        gone_before = len(self.gone)
        requests = {name: Fit(number, rows) for name, rows in broadcasts.items()}
        replies = self._engine.exchange(requests, timeout_seconds=self._plan.timeout_seconds)
        uploads: dict[str, Upload] = {}
        refused: dict[str, Refusal] = {}
        for name in sorted(broadcasts):
            reply = replies.get(name, Failure(name, "no answer"))
            verdict = self._judge(name, reply, number)
            if isinstance(verdict, Upload):
                uploads[name] = verdict
            else:
                refused[name] = verdict
        if len(uploads) < self._plan.minimum_clients:
            if len(self.gone) == gone_before and len(self.gone) < len(self._greetings):
                raise self._too_few(number, len(uploads), refused)
            return RoundReport(self.round, {}, {}, {name: refusal.reason for name, refusal in refused.items()})
        self._average(uploads)
        self.round = number
        return RoundReport(
            number,
            broadcasts,
            uploads,
            {name: refusal.reason for name, refusal in refused.items()},
            {name: sum(table.nbytes for table in rows.values()) for name, rows in broadcasts.items()},
            {name: payload_bytes(upload) for name, upload in uploads.items()},
            self.weights,
        )

    def _too_few(self, number: int, delivered: int, refused: Mapping[str, Refusal]) -> FedkgeError:
        reasons = "; ".join(f"{name}: {refusal.reason}" for name, refusal in refused.items())
        what = (
            f"round {number}: expected at least {self._plan.minimum_clients} valid uploads, got {delivered} "
            f"({reasons}). Everything up to round {self.round} is saved"
        )
        if refused and all(refusal.diverged for refusal in refused.values()):
            return NumericalError(
                f"{what}, but the training has diverged and would do so again: start a new run with a lower "
                "learning-rate (if rows this long are right, raise largest-row-norm in config.toml and `fedkge resume`)"
            )
        return RunError(f"{what}: fix the clients, then `fedkge resume`")

    def _judge(self, name: str, reply: object, number: int) -> Upload | Refusal:
        if isinstance(reply, Failure):
            return Refusal(reply.reason, reply.diverged)
        if isinstance(reply, Goodbye):
            self.gone.add(name)
            return Refusal(reply.reason)
        if not isinstance(reply, Upload):
            return Refusal(f"expected an upload, got {type(reply).__name__}")
        triples = self._greetings[name].triples
        for what, expected, found in (
            ("an upload of round", number, reply.round),
            ("a number of triples of", triples, reply.triples),
            ("the tables", sorted(self.tables), sorted(reply.rows)),
        ):
            if found != expected:
                return Refusal(f"expected {what} {expected}, got {found}")
        if reply.loss is not None and not abs(reply.loss) <= LARGEST_LOSS:  # this also refuses NaN
            return Refusal(
                f"expected a finite loss of at most {LARGEST_LOSS:,.0f}, got {reply.loss!s:.40}", diverged=True
            )
        return self._judge_rows(name, reply)

    def _judge_rows(self, name: str, upload: Upload) -> Upload | Refusal:
        for kind, rows in upload.rows.items():
            shape = (len(self.owners[kind][name]), self.tables[kind].shape[1])
            if reason := misfit(rows, shape):
                return Refusal(f"{kind}: {reason}")
            if reason := excess(rows, self._plan.largest_row_norm):
                return Refusal(f"{kind}: {reason}", diverged=True)
        return upload

    def _average(self, uploads: Mapping[str, Upload]) -> None:
        for kind, table in self.tables.items():
            rows = {name: upload.rows[kind] for name, upload in uploads.items()}
            self.tables[kind] = self._plan.aggregation.aggregate(table, rows, self.owners[kind], self.weights)

    def evaluate(self, split: str) -> dict[str, RankingMetrics]:
        """Each client's ranking of its own held-out triples with the tables as they are now."""
        requests = {name: Evaluate(self.rows_for(name), split) for name in sorted(self._present())}
        replies = self._engine.exchange(requests, timeout_seconds=self._plan.timeout_seconds)
        scores: dict[str, RankingMetrics] = {}
        for name in sorted(requests):
            reply = replies.get(name, Failure(name, "no answer"))
            if not isinstance(reply, RankingMetrics):
                reason = reply.reason if isinstance(reply, Failure) else f"got {type(reply).__name__}, not scores"
                diverged = isinstance(reply, Failure) and reply.diverged
                raise (NumericalError if diverged else RunError)(f"{name} could not evaluate: {reason}")
            if reply.triples:
                scores[name] = reply
        _refuse_other_metrics(scores)
        return scores


def _refuse_other_metrics(scores: Mapping[str, RankingMetrics]) -> None:
    """Refuse clients with other metrics than most: only equal metrics can be averaged."""
    usual, _ = Counter(frozenset(score.metrics) for score in scores.values()).most_common(1)[0] if scores else ((), 0)
    for name, score in scores.items():
        if set(score.metrics) != set(usual):
            raise RunError(f"{name} could not evaluate: expected {len(usual)} metrics, as of others, got other ones")


def _refuse_unlike(greetings: Mapping[str, Greeting]) -> None:
    """Refuse greetings with other widths or repeated names: such rows cannot be averaged."""
    first = next(iter(greetings.values()))
    for name, greeting in greetings.items():
        if greeting.widths != first.widths or set(greeting.names) != set(first.widths):
            raise RunError(
                f"{name} did not join the federation: expected tables of widths {dict(first.widths)}, "
                f"got {dict(greeting.widths)}; all clients need the same model and dimension"
            )
        for kind, names in greeting.names.items():
            if len(set(names)) != len(names):
                raise RunError(f"{name} did not join the federation: it names some of its {kind} twice")


def weighted_mean(scores: Mapping[str, RankingMetrics]) -> dict[str, float]:
    """Metrics averaged over clients, weighted by their ranked triples, as FedE does.

    >>> weighted_mean({"a": RankingMetrics(1, {"mrr": 0.0}), "b": RankingMetrics(3, {"mrr": 1.0})})
    {'mrr': 0.75}
    """
    return weighted_metrics([(score.triples, score.metrics) for score in scores.values()])
