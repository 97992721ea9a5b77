"""Several runs side by side."""

from __future__ import annotations

from fedkge.api.opening import RunLike, directory_of
from fedkge.report.comparison import Comparison
from fedkge.report.comparison import compare as compare_directories


def compare(*runs: RunLike) -> Comparison:
    """Put two or more runs side by side: claimed and proven epsilon, the strongest attack, utility beside the controls.

    The figures are exact, so the comparison is for the owner of the data.

    >>> from tempfile import TemporaryDirectory
    >>> import fedkge as fk
    >>> graph = fk.synthetic_graph(entities=60, relations=4, triples=400, seed=1)
    >>> with TemporaryDirectory() as folder:
    ...     for model in ("transe", "distmult"):
    ...         _ = fk.train(graph, model=model, rounds=1, dimension=8, negatives=8, out=f"{folder}/{model}")
    ...     [run.model for run in compare(f"{folder}/transe", f"{folder}/distmult").runs]
    ['TransE', 'DistMult']
    """
    return compare_directories([directory_of(run) for run in runs])
