"""PyKEEN's side of the comparison: the same four models, the same numbers in them, its own loops.

Like is compared with like: neither side regularises, PyKEEN does not normalise all entities after every step (as its
TransE and DistMult do by default), and RotatE sums moduli on both sides: PyKEEN's own class takes the norm of the whole
vector whatever `p` says, and is slower. So this PyKEEN is about as fast as it gets; `defaults` is it out of the box.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkge.graph import Graph, Triples
from fedkge.graph.pykeen import to_pykeen
from fedkge.models import Embedding

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.losses import NSSALoss
    from pykeen.models import ComplEx, DistMult, ERModel, RotatE, TransE
    from pykeen.nn.modules import ComplExInteraction, DistMultInteraction, RotatEInteraction, TransEInteraction
    from pykeen.training import SLCWATrainingLoop
    from pykeen.training.callbacks import TrainingCallback
    from pykeen.utils import ensure_complex, estimate_cost_of_sequence

for _name in ("pykeen", "torch_max_mem"):
    logging.getLogger(_name).setLevel(logging.ERROR)


class SumOfModuli(RotatEInteraction):
    """PyKEEN's RotatE with the distance of the RotatE authors."""

    def forward(self, h: Any, r: Any, t: Any) -> Any:
        """Rotate whichever end is cheaper, as PyKEEN does, then sum the moduli of the difference."""
        h, r, t = ensure_complex(h, r, t)
        if estimate_cost_of_sequence(h.shape, r.shape) < estimate_cost_of_sequence(r.shape, t.shape):
            h = h * r
        else:
            t = t * torch.conj(r)
        return -(h - t).abs().sum(dim=-1)


INTERACTIONS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "TransE": (TransEInteraction, {"p": 1}),
    "RotatE": (SumOfModuli, {}),
    "DistMult": (DistMultInteraction, {}),
    "ComplEx": (ComplExInteraction, {}),
}
CLASSES: dict[str, type[ERModel]] = {"TransE": TransE, "RotatE": RotatE, "DistMult": DistMult, "ComplEx": ComplEx}
COMPLEX = ("RotatE", "ComplEx")

METRICS = {
    "mrr": "inverse_harmonic_mean_rank",
    "mean_rank": "arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
    "hits_at_1": "hits_at_1",
    "hits_at_3": "hits_at_3",
    "hits_at_10": "hits_at_10",
}
"""fedkge's name of a metric, and PyKEEN's."""


def as_pykeen(embedding: Embedding, factory: Any, margin: float = 10.0) -> ERModel:
    """PyKEEN's model of the same name with this embedding's numbers in its tables."""
    name = embedding.scorer.name
    interaction, options = INTERACTIONS[name]
    width = embedding.tables.entities.shape[1] // (2 if name in COMPLEX else 1)
    table = {"shape": width, "dtype": torch.cfloat if name in COMPLEX else torch.float}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ERModel(
            triples_factory=factory,
            interaction=interaction,
            interaction_kwargs=options,
            entity_representations_kwargs=dict(table),
            relation_representations_kwargs=dict(table),
            loss=NSSALoss(margin=margin, adversarial_temperature=1.0),
            random_seed=0,
        )
    _fill(model.entity_representations[0], _entity_rows(embedding))
    _fill(model.relation_representations[0], _relation_rows(embedding))
    return model


def defaults(embedding: Embedding, factory: Any, margin: float = 10.0) -> ERModel:
    """PyKEEN's own class of that name and width with its own constraints, regularisers and start values."""
    name = embedding.scorer.name
    width = embedding.tables.entities.shape[1] // (2 if name in COMPLEX else 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = NSSALoss(margin=margin, adversarial_temperature=1.0)
        return CLASSES[name](triples_factory=factory, embedding_dim=width, loss=loss, random_seed=0)


def _entity_rows(embedding: Embedding) -> NDArray[Any]:
    rows = embedding.tables.entities
    return _join(rows) if embedding.scorer.name in COMPLEX else rows


def _relation_rows(embedding: Embedding) -> NDArray[Any]:
    rows = embedding.tables.relations
    if embedding.scorer.name == "RotatE":
        return np.exp(1j * pi / embedding.scorer.phase_range * rows.astype(np.float64))
    return _join(rows) if embedding.scorer.name == "ComplEx" else rows


def _join(rows: NDArray[Any]) -> NDArray[Any]:
    """Complex numbers from rows with the real parts in front and the imaginary parts behind."""
    half = rows.shape[1] // 2
    return rows[:, :half] + 1j * rows[:, half:]


def _fill(representation: Any, rows: NDArray[Any]) -> None:
    weight = representation._embeddings.weight
    numbers = torch.as_tensor(np.array(rows, dtype=np.complex64 if np.iscomplexobj(rows) else np.float32))
    if numbers.is_complex() and not weight.is_complex():
        numbers = torch.view_as_real(numbers).reshape(weight.shape)
    with torch.no_grad():
        weight.copy_(numbers)


class _Stopwatch(TrainingCallback):
    """Notes the CPU time at the end of every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def post_batch(self, epoch: int, batch: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.seconds.append(time.process_time())


def train_rate(
    make_model: Callable[[Embedding, Any], ERModel],
    graph: Graph,
    embedding: Embedding,
    *,
    batches: int,
    warm_up: int = 5,
    batch_size: int = 64,
    negatives: int = 256,
    learning_rate: float = 1e-3,
) -> float:
    """Triples per CPU-second of PyKEEN's own sLCWA loop with Adam; set-up and the first batches do not count."""
    chosen = np.random.default_rng(0).choice(len(graph.train), (batches + warm_up) * batch_size, replace=False)
    factory = to_pykeen(Graph(graph.name, graph.entities, graph.relations, graph.train[np.sort(chosen)]))["train"]
    model = make_model(embedding, factory)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.get_grad_params(), lr=learning_rate),
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": negatives},
    )
    watch = _Stopwatch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop.train(
            triples_factory=factory,
            num_epochs=1,
            batch_size=batch_size,
            use_tqdm=False,
            pin_memory=False,
            callbacks=watch,
        )
    return batches * batch_size / (watch.seconds[-1] - watch.seconds[warm_up - 1])


def evaluate(
    model: ERModel, triples: Triples, known: Triples, batch_size: int | None = None
) -> tuple[float, dict[str, float]]:
    """CPU-seconds of PyKEEN's evaluator, which filters by itself, and its metrics under fedkge's names."""
    evaluator = RankBasedEvaluator(filtered=True)
    asked, facts = (torch.as_tensor(table.astype(np.int64)) for table in (triples, known))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        result = evaluator.evaluate(
            model=model,
            mapped_triples=asked,
            additional_filter_triples=[facts],
            batch_size=batch_size,
            use_tqdm=False,
        )
        seconds = time.process_time() - began
    return seconds, named_metrics(result)


def named_metrics(result: Any) -> dict[str, float]:
    """The metrics of one of PyKEEN's results under fedkge's names."""
    return {
        f"{side}.realistic.{ours}": float(result.get_metric(f"{side}.realistic.{theirs}"))
        for side in ("tail", "head", "both")
        for ours, theirs in METRICS.items()
    }
