"""The report's fixed sentences: what is released, whom one must trust, what no number here covers."""

from __future__ import annotations

from fedkge.accounting.facts import NameRule
from fedkge.configuration import Configuration
from fedkge.runs.released import described

NO_PROMISE = "No promise was made: this run has no defence, and nothing limits what its messages give away."
NOT_ATTACKED = "Not measured: no attack has been made on this run (`fedkge attack RUN`)."
NOT_AUDITED = "Not measured: this run has not been audited (`fedkge audit`)."
NOT_RANKED = "Not measured: the run has no test result."
NOT_EXPOSED = "Not measured: the attacks on this run did not keep which triples they found (`fedkge attack RUN` again)."

IN_OWNERS_COPY = (
    "Not in this copy: measurements on private triples are in the owner's copy, because no budget has paid for them."
)
FIGURES = "Figures about held-out triples, with noise, once, to whoever is given the report."
NO_FIGURE_PAID = (
    "No figure was paid for: how well the model ranks private triples stands in the owner's copy alone "
    "(`fedkge report RUN --metrics-epsilon 1` pays for a figure that may be passed on)."
)

PLAUSIBLE = "a model that merely knows what is plausible separates the two."
DESIGNS: dict[str, tuple[str, str, str]] = {
    "R": ("real triples that a coin left in the data", "real triples that a coin took out before training", ""),
    "C": ("random triples that were inserted (canaries)", "random triples that were not", ""),
    "B": (
        "real training triples",
        "real triples that were held out",
        "held-out triples differ from training triples in more than membership (names that occur once are never held "
        "out).",
    ),
    "A": ("real training triples", "uniform random triples", PLAUSIBLE),
    "D": ("real training triples", "the same with one end replaced by one that fits", PLAUSIBLE),
}
"""Of each design: members, non-members, and why it does not count for the verdict (blank: it counts)."""

COUNTED = "Only chance decided who is a member."
COINS = ("C", "R")
"""Designs in which a coin decided who is a member."""
DRAWN = (*COINS, "B")
"""Designs whose curves are drawn."""

RELEASED = {
    "fede": (
        "Each client's names of entities and its number of triples, as the promise says, to the server, once.",
        "Each client's entity vectors, to the server, in every round.",
        "Their average over the owners of each entity, to every client, in every round.",
    ),
    "fedr": (
        "Each client's names of relations and its number of triples, as the promise says, to the server, once.",
        "Each client's relation vectors, to the server, in every round.",
        "Their average over the owners of each relation, to every client, in every round.",
    ),
    "isolated": ("Nothing: each client trains alone.",),
    "pooled": ("Every triple: all data was put together in one place before training.",),
}

NAMES = {
    NameRule.FROM_TRIPLES: (
        "Names: no list was given, so entity names follow from triples. Whoever aligns the vocabularies learns which "
        "names a client has, and a triple that is the only mention of a name is not protected. Relation names are "
        "public too."
    ),
    NameRule.LISTED: (
        "Names: the data's owner says that entity names come from a list that was made without looking at triples, "
        "which fedkge cannot check. Who aligns the vocabularies learns the list. Relation names are public too."
    ),
    NameRule.THRESHOLD: (
        "Relation names are public. (Entity names are covered: those that enough triples mention were released with "
        "noise and paid for, the others stayed at home with their triples.)"
    ),
}
"""What a promise leaves open about names, by where they come from."""
NOT_COVERED = (
    "Sizes: numbers of entities, relations and rounds, and the size of every message.",
    "Groups: a person with k triples in the data is protected k times less: epsilon is multiplied by k.",
    "Exact figures: validation and test results, attacks and audits, which stand in the owner's copy alone.",
    "What a client publishes by other ways, and what others can infer without its data.",
)

LIMITS = (
    "Attacks show what these attackers could do. A better one may do more: their success is a lower limit of what is "
    "given away, never an upper one.",
    "One run is one draw. The intervals cover the choice of the attacked triples, not the randomness of training.",
    "The best F1 and the best round are chosen with the answers at hand, as the paper does. No attacker has them.",
    "An attack that is sure about a few triples and ignorant about the rest can hide behind an AUC near chance. Look "
    "at the left end of the ROC curve, and at the audit.",
    "An AUC below chance counts as leakage too: an attacker who learns the sign elsewhere, as the shadow attack does, "
    "can use it.",
    "The audit's bound is what was shown, its ceiling what that number of guesses could show at most. A bound below "
    "the claim confirms nothing.",
    "A claim (epsilon, delta) rests on a proof, on code that does what the proof assumes, and on noise that nobody can "
    "predict.",
)


SHAREABLE_LIMITS = (
    "This copy holds what is public and what a budget has paid for. Attacks, audits and exact figures are functions of "
    "private triples: ask the owner whether they contradict the promise.",
    LIMITS[-1],
)


ORDINARY = (
    "The attacked triples are real ones (design R). The shadow attack knows every triple but their coins: the worst "
    "case, not a likely one."
)


def limits(configuration: Configuration) -> tuple[str, ...]:
    """How far the page's numbers go."""
    if configuration.experiment.canary_source == "real":
        return (ORDINARY, *LIMITS)
    return (*described(configuration).canaries, *LIMITS)


def asked_about(asked: int, canaries: int) -> str:
    """How many canaries a noisy copy was asked about, and what to do about it if they are few.

    >>> asked_about(900, 1000)
    'The copy was asked about 900 of the 1,000 canaries.'
    """
    said = f"The copy was asked about {asked:,} of the {canaries:,} canaries."
    if 2 * asked >= canaries:
        return said
    more = "Likely canaries (`--canary-source likely`) and a larger epsilon have more of them asked."
    return f"{said} Of the others only counts tell. {more}"


def released(configuration: Configuration) -> tuple[str, ...]:
    """What leaves a client."""
    known = RELEASED.get(
        configuration.federation.strategy, (f"What strategy {configuration.federation.strategy} shares.",)
    )
    return (
        (*known, "The final model, to whoever is given it.")
        if configuration.federation.strategy != "isolated"
        else known
    )


def trusted(configuration: Configuration, promised: bool) -> str:
    """Whom a client must trust for the promise, or without one."""
    if configuration.federation.strategy == "pooled":
        return "Everybody who holds the pooled data."
    if configuration.federation.strategy == "isolated":
        return "Nobody: nothing leaves a client but its own model, if it gives that away."
    if promised:
        return (
            "Only its own machine and its own random numbers. The server and all other clients may look at everything "
            "that is sent, and may send back what they like."
        )
    return "The server and every other client, fully: vectors are sent as they are."


def not_covered(configuration: Configuration, names: NameRule | None) -> tuple[str, ...]:
    """What the promise says nothing about."""
    size = ("The number of a client's training triples, which this run treats as public.",)
    return (
        NAMES[names or NameRule.FROM_TRIPLES],
        *(size if configuration.privacy.public_triples else ()),
        *NOT_COVERED,
    )


def seed_note(noise_seed: int | None, defended: bool) -> str:
    """What the seeds mean for privacy."""
    if noise_seed is not None:
        return (
            "RESEARCH SEED: the noise of this run can be repeated by anyone who knows the seed, and then subtracted. "
            "No promise holds for it. Never release such a run."
        )
    if defended:
        return (
            "The noise came from the operating system's generator and was not kept. The seed repeats start values and "
            "negatives only."
        )
    return "The seed repeats the run exactly; there is no noise in it."
