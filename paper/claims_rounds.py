"""What the paper says about its attacks round by round, decided by the figure over the rounds."""

from __future__ import annotations

from collections.abc import Callable

from paper.claims import Facts, Finding, Rule, Vote, judged, untested
from paper.claims_attacks import CLOSE, THREE
from paper.figure_rounds import Series
from paper.names import FAMILIES, data_name, model_name, short

FIGURE = "figure-rounds"


def _series(facts: Facts, families: tuple[str, ...], least: int) -> list[Series]:
    return [
        one for one in facts.rounds.series if one.family in families and not one.printed and len(one.rounds) >= least
    ]


def _course(one: Series) -> str:
    place = f"{FAMILIES[one.family]}, {model_name(one.model)} on {data_name(one.data)}"
    said = f"{place}: {short(one.best_f1[0])} at round {one.rounds[0]}"
    return said + (f", {short(one.best_f1[-1])} at round {one.rounds[-1]}" if len(one.rounds) > 1 else "")


def _over_rounds(
    facts: Facts, families: tuple[str, ...], least: int, decide: Callable[[tuple[float, ...]], bool]
) -> list[Vote]:
    """A vote for every curve of at least so many rounds; a federation that has not been run has none yet."""
    votes = [Vote(decide(one.best_f1), _course(one), model_name(one.model)) for one in _series(facts, families, least)]
    return votes + [Vote(None, model_name(model), model_name(model)) for _, model in facts.rounds.missing]


def rises(facts: Facts) -> Finding:
    """CIP and SI rise after the first attacked round."""
    votes = _over_rounds(facts, ("cip", "si"), 2, lambda f1: max(f1[1:]) > f1[0] + CLOSE / 2)
    return judged(votes, "curves", share=0.75, note="Strongest form of each attack.")


def levels_off(facts: Facts) -> Finding:
    """CIP and SI may stop rising in the last quarter."""
    votes = _over_rounds(facts, ("cip", "si"), 3, lambda f1: f1[-1] - f1[(3 * len(f1)) // 4 - 1] <= CLOSE)
    if _series(facts, ("cip", "si"), 1) and not _series(facts, ("cip", "si"), 3):
        return untested("There are fewer than three attacked rounds here.", "fewer than three attacked rounds")
    return judged(votes, "curves", share=0.5, note="The paper says may.")


def active_peaks_early(facts: Facts) -> Finding:
    """CIA is highest at its first attacked round."""
    played = _series(facts, ("cia",), 1)
    if played and not _series(facts, ("cia",), 2):
        return untested(
            f"CIA was played at one round alone here ({_course(played[0])}).", "CIA was played at one round"
        )
    if played and not any(_from_the_start(facts, one) for one in played):
        courses = "; ".join(map(_course, played[:2]))
        return untested(
            "CIA trains on forks of the federation and is played at few rounds, none of them at the beginning, where "
            f"the other attacks start. From there on: {courses}.",
            f"CIA was first played at round {min(one.rounds[0] for one in played)}",
        )
    votes = _over_rounds(facts, ("cia",), 2, lambda f1: max(f1) == f1[0] > f1[-1] + CLOSE / 2)
    return judged(votes, "curves", note="CIA trains on forks of the federation and is played at few rounds.")


def _from_the_start(facts: Facts, one: Series) -> bool:
    """Whether it was played as early as any attack on the same federation."""
    others = [other.rounds[0] for other in facts.rounds.series if (other.data, other.model) == (one.data, one.model)]
    return one.rounds[0] == min(others)


def dynamic(facts: Facts) -> Finding:
    """Strength differs between rounds."""
    return judged(_over_rounds(facts, THREE, 2, lambda f1: max(f1) - min(f1) > CLOSE), "curves", share=0.5)


ROUNDS = (
    Rule(
        "dynamic-strength",
        "Section 1",
        "how strong an attack is changes from round to round",
        FIGURE,
        dynamic,
    ),
    Rule(
        "rise",
        "Section 5.2",
        "CIP and SI get stronger in the first rounds",
        FIGURE,
        rises,
    ),
    Rule("level-off", "Section 5.2", "CIP and SI may stop getting stronger later on", FIGURE, levels_off),
    Rule(
        "cia-peaks-early",
        "Section 5.2",
        "CIA is strongest in the first rounds and then weakens",
        FIGURE,
        active_peaks_early,
    ),
)
