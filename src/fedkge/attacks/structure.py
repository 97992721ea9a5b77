"""What several attacks share: rounds that hold what is needed, rows that must be known, and relation rows.

An attack that knows entity rows still needs relation rows to score a triple. They are a colluding client's own, or
are estimated from the victim's upload and auxiliary triples: what a relation does to entities it does to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedkge.attacks.attack import Needs, Scores
from fedkge.base.errors import ConfigurationError, DataError
from fedkge.graph import HEAD, RELATION, TAIL, Triples
from fedkge.models.embedding import Embedding
from fedkge.models.rotate import RotatE
from fedkge.models.scorer import Known, Scorer
from fedkge.models.tables import Gradients, RowGradient, Table, Tables
from fedkge.models.transe import TransE
from fedkge.runs.view import Piece, View

RelationSource: TypeAlias = Callable[[View, int], Table]
"""From a view and a round: one row per relation, in the scorer's own terms; NaN where a relation is not known."""

SERVER = Needs(adversary=("server",), auxiliary=True)
COLLUSION = Needs(adversary=("collusion",))


def rounds_with(view: View, attack: str, *pieces: Piece, newest_first: bool = False) -> Iterator[int]:
    """The rounds of which the view holds all `pieces` (a victim may sit a round out); an error when there is none."""
    found = False
    for number in reversed(view.rounds) if newest_first else view.rounds:
        if all(view.holds(number, piece) for piece in pieces):
            found = True
            yield number
    if not found:
        raise ConfigurationError(
            f"attack {attack!r} needs a round with {' and '.join(pieces)}; the view of {view.adversary} holds none: "
            "record rounds in which the victim took part, or choose an attack for this adversary"
        )


def newest_round(view: View, attack: str, *pieces: Piece) -> int:
    """The newest round of which the view holds all `pieces`."""
    return next(rounds_with(view, attack, *pieces, newest_first=True))


def table_of(view: View, number: int, piece: Piece) -> Table:
    """A table of a round that the view must hold."""
    table = view.table(number, piece)
    if table is None:
        raise ConfigurationError(f"the adversary does not hold {piece} of round {number}")
    return table


def movements(
    view: View, attack: str, triples: Triples, source: RelationSource
) -> Iterator[tuple[Table, Table, Table]]:
    """Of every round in which the victim took part: the rows it was sent, its upload, and relation rows."""
    for number in rounds_with(view, attack, "sent", "upload"):
        sent, upload = table_of(view, number, "sent"), table_of(view, number, "upload")
        for table in (sent, upload):
            require_known(table, triples, attack)
        yield sent, upload, source(view, number)


def known_rows(table: Table) -> NDArray[np.bool_]:
    """Which rows the adversary knows.

    >>> known_rows(np.array([[0.0, 1.0], [np.nan, np.nan]])).tolist()
    [True, False]
    """
    return np.asarray(np.isfinite(table).all(axis=1), dtype=np.bool_)


def ends_known(table: Table, triples: Triples) -> NDArray[np.bool_]:
    """Whether the adversary knows the rows of both ends of each triple.

    >>> ends_known(np.array([[0.0], [1.0], [np.nan]]), np.array([[0, 0, 1], [0, 0, 2], [0, 0, 9]])).tolist()
    [True, False, False]
    """
    known = known_rows(table)
    ends = triples[:, [HEAD, TAIL]]
    inside = (ends >= 0) & (ends < len(known))
    return np.asarray((inside & known[np.where(inside, ends, 0)]).all(axis=1) if len(known) else inside.all(axis=1))


def require_known(table: Table, triples: Triples, attack: str) -> None:
    """Refuse targets about entities whose rows the adversary does not know."""
    fine = ends_known(table, triples)
    if not fine.all():
        raise DataError(
            f"attack {attack!r}: {int((~fine).sum())} of {len(triples)} target triples have target entities outside "
            "the overlap of adversary and victim: choose targets whose both ends the adversary knows"
        )


def score_under(scorer: Scorer, entities: Table, relations: Table, triples: Triples, margin: float = 0.0) -> Scores:
    """The model's score of each triple under these rows; NaN where the relation is not known.

    >>> rows = np.array([[0.0], [1.0]], np.float32)
    >>> score_under(TransE(), rows, np.array([[3.0], [np.nan]]), np.array([[0, 0, 1], [0, 1, 1]], np.int32)).tolist()
    [-2.0, nan]
    """
    scores = np.full(len(triples), np.nan)
    able = relation_is_known(relations, triples)
    if able.any():
        tables = Tables(np.ascontiguousarray(entities), np.nan_to_num(relations).astype(entities.dtype, order="C"))
        scores[able] = Embedding(scorer, tables, margin).score_triples(np.ascontiguousarray(triples[able]))
    return scores


def relation_is_known(relations: Table, triples: Triples) -> NDArray[np.bool_]:
    """Whether the relation of each triple has a row in `relations`."""
    ids = triples[:, RELATION]
    inside = ids < len(relations)
    known = np.append(known_rows(relations), False)
    answer: NDArray[np.bool_] = known[np.where(inside, ids, len(relations))]
    return answer


def worst_where_unknown(scores: Scores) -> Scores:
    """Give targets that could not be scored (no row for their relation) the lowest score of the others, or 0.

    >>> worst_where_unknown(np.array([2.0, np.nan, 1.0])).tolist()
    [2.0, 1.0, 1.0]
    """
    unknown = np.isnan(scores)
    worst = scores[~unknown].min() if not unknown.all() else 0.0
    return np.where(unknown, worst, scores)


def relations_of_client(view: View, number: int) -> Table:
    """The colluding (or attacking) client's own relation rows."""
    relations = view.table(number, "relations")
    if relations is None:
        raise ConfigurationError(
            f"round {number}: the view of {view.adversary} holds no relation rows: a client must take part"
        )
    return relations


def relations_from_auxiliary(view: View, number: int) -> Table:
    """Relation rows estimated from the victim's upload and the auxiliary triples."""
    upload = view.table(number, "upload")
    if view.auxiliary is None or upload is None:
        raise ConfigurationError(
            "relations can be estimated only from an upload and auxiliary triples: set --auxiliary to at least 1"
        )
    return estimate_relations(view.scorer, upload, view.auxiliary)


def estimate_relations(scorer: Scorer, entities: Table, auxiliary: Triples) -> Table:
    """One row per relation from the `entities` that its auxiliary triples join; NaN for a relation without any.

    TransE   coordinate median of t - h.
    RotatE   circular median of the phase of t / h per complex coordinate.
    others   bilinear scores: the direction of their gradient by the relation, with the mean entity row as the false
             tail, as one training step from r = 0 would go; only the direction can be estimated, so rows have length 1.

    >>> rows = np.array([[0.0], [1.0], [5.0]], np.float32)
    >>> estimate_relations(TransE(), rows, np.array([[0, 1, 1], [1, 1, 2], [0, 1, 1]], np.int32)).tolist()
    [[nan], [1.0]]
    """
    known = known_rows(entities)
    usable = auxiliary[known[auxiliary[:, HEAD]] & known[auxiliary[:, TAIL]]]
    if len(usable) == 0:
        raise ConfigurationError(
            f"none of the {len(auxiliary)} auxiliary triples has both ends in the victim's upload: "
            "set --auxiliary higher"
        )
    if isinstance(scorer, TransE):
        return _by_relation(usable, entities[usable[:, TAIL]] - entities[usable[:, HEAD]], _median)
    if isinstance(scorer, RotatE):
        phases = phases_between(entities, usable)
        return _by_relation(usable, phases, circular_median) * (scorer.phase_range / np.pi)
    if scorer.comparison.is_distance:
        raise ConfigurationError(f"no way is known to estimate the relations of {scorer.name} from auxiliary triples")
    return _bilinear_directions(scorer, entities, usable)


def phases_between(entities: Table, triples: Triples) -> Table:
    """The phase of t / h in each complex coordinate, which RotatE wants to equal the relation's.

    >>> phases_between(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0, 0, 1]])).tolist() == [[np.pi / 2]]
    True
    """
    half = entities.shape[1] // 2
    rows = entities[:, :half] + 1j * entities[:, half:]
    phases: Table = np.angle(rows[triples[:, TAIL]] * np.conj(rows[triples[:, HEAD]]))
    return phases


def circular_median(phases: Table) -> Table:
    """The median of angles along axis 0: the median of how far they turn from their mean direction.

    >>> degrees = circular_median(np.radians([[179.0], [-179.0], [-178.0]])) * 180 / np.pi
    >>> round(float(degrees[0]) % 360)
    181
    """
    mean = np.angle(np.exp(1j * phases).sum(axis=0))
    turned = np.angle(np.exp(1j * (phases - mean)))
    return np.asarray(np.median(turned, axis=0) + mean)


def _median(rows: Table) -> Table:
    return np.asarray(np.median(rows, axis=0))


def _by_relation(triples: Triples, values: Table, centre: Callable[[Table], Table]) -> Table:
    ids = triples[:, RELATION]
    rows = np.full((int(ids.max()) + 1, values.shape[1]), np.nan, dtype=values.dtype)
    order = np.argsort(ids, kind="stable")
    relations, first = np.unique(ids[order], return_index=True)
    for relation, members in zip(relations, np.split(order, first[1:]), strict=True):
        rows[relation] = centre(values[members])
    return rows


def _bilinear_directions(scorer: Scorer, entities: Table, triples: Triples) -> Table:
    """The gradient of the summed scores by each relation row, scaled to length 1."""
    known = known_rows(entities)
    rows = np.nan_to_num(entities)
    parts = Known.of(triples, "tail")
    count, width = int(parts.relations.max()) + 1, scorer.relation_width(1) * rows.shape[1] // scorer.entity_width(1)
    nothing = np.zeros((count, width), dtype=rows.dtype)
    into = Gradients(RowGradient.of(rows, len(triples)), RowGradient.of(nothing, count))
    into.entities.touch(parts.anchors)
    into.relations.touch(parts.relations)
    slope = rows[triples[:, TAIL]] - rows[known].mean(axis=0)
    scorer.backward(Tables(rows, nothing), parts, slope, into)
    directions = np.full((count, width), np.nan, dtype=rows.dtype)
    sums = into.relations.values[: into.relations.count]
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    directions[into.relations.touched] = sums / np.where(lengths > 0, lengths, 1)
    return directions
