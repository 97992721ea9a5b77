"""The report's fixed sentences: what is released, whom a client must trust, and what the promise does not cover."""

from __future__ import annotations

from fedkge.accounting.facts import NameRule
from fedkge.configuration import Configuration
from fedkge.runs.released import described

NO_PROMISE = "No promise: this run has no defence. Nothing limits what its messages reveal."
NOT_ATTACKED = "Not tested: no attack was run on this federation (`fedkge attack RUN`)."
NOT_AUDITED = "Not tested: no audit was run on this federation (`fedkge audit`)."
NOT_RANKED = "Not measured: the run has no test result."
NOT_EXPOSED = (
    "Not known: the attacks on this run did not record which triples they found. Run `fedkge attack RUN` again."
)

IN_OWNERS_COPY = (
    "Not in this copy: no privacy budget paid for measurements on private triples. The owner's copy has them."
)
FIGURES = "Noisy figures about held-out triples, once, to everybody who gets the report."
NO_FIGURE_PAID = (
    "No figure was paid for. Only the owner's copy says how well the model ranks private triples. "
    "`fedkge report RUN --metrics-epsilon 1` pays for a figure that may be passed on."
)

PLAUSIBLE = "a model that only knows what is plausible can tell them apart."
DESIGNS: dict[str, tuple[str, str, str]] = {
    "R": ("real triples that a coin left in the data", "real triples that a coin took out before training", ""),
    "C": ("random triples that were inserted (canaries)", "random triples that were not inserted", ""),
    "B": (
        "real training triples",
        "real triples that were held out",
        "held-out triples differ from training triples in more than membership. For example, a triple with a name that "
        "occurs once is never held out.",
    ),
    "A": ("real training triples", "uniform random triples", PLAUSIBLE),
    "D": ("real training triples", "the same triples with one end replaced by a plausible one", PLAUSIBLE),
}
"""For each design: members, non-members, and why it does not count for the verdict (blank if it counts)."""

COUNTED = "Only chance decided which triples are members."
COINS = ("C", "R")
"""Designs in which a coin decided which triples are members."""
DRAWN = (*COINS, "B")
"""Designs whose curves are drawn."""

RELEASED = {
    "fede": (
        "Once, to the server: each client's entity names and number of triples, in the form that the promise states.",
        "In every round, to the server: each client's entity vectors.",
        "In every round, to every client: for each entity, the average over the clients that own it.",
    ),
    "fedr": (
        "Once, to the server: each client's relation names and number of triples, in the form that the promise states.",
        "In every round, to the server: each client's relation vectors.",
        "In every round, to every client: for each relation, the average over the clients that own it.",
    ),
    "isolated": ("Nothing: each client trains alone.",),
    "pooled": ("Every triple: all data was put together in one place before training.",),
}

NAMES = {
    NameRule.FROM_TRIPLES: (
        "Names: no list was given, so the entity names come from the triples. The party that aligns the vocabularies "
        "learns which names a client has. A triple that is the only mention of a name is not protected. Relation "
        "names are public too."
    ),
    NameRule.LISTED: (
        "Names: the data's owner says that the entity names come from a list that was made without looking at triples. "
        "fedkge cannot check this. The party that aligns the vocabularies learns the list. Relation names are public "
        "too."
    ),
    NameRule.THRESHOLD: (
        "Relation names are public. (Entity names are covered: names that enough triples mention were released by a "
        "noisy threshold, and the budget paid for it. The other names and their triples were left out.)"
    ),
}
"""What a promise does not cover about names, by where the names come from."""
NOT_COVERED = (
    "Sizes: numbers of entities, relations and rounds, and the size of every message.",
    "Groups: if a person has k triples in the data, multiply epsilon by k.",
    "Exact figures: validation and test results, attacks and audits. Only the owner's copy has them.",
    "What a client publishes in other ways, and what others can infer without its data.",
)

LIMITS = (
    "Attacks show what these attackers could do. A better attacker may do more: their success is a lower bound on what "
    "the run reveals, never an upper bound.",
    "The intervals cover the choice of the attacked triples, but not the randomness of training: this is one run.",
    "The best F1 and the best round are chosen with knowledge of the answers, as in the paper. No attacker has that.",
    "An attack can be sure about a few triples and still have an AUC near chance. Look at the left end of the ROC "
    "curve, and at the audit.",
    "An AUC below chance is leakage too: an attacker who learns the sign elsewhere, as the shadow attack does, can "
    "use it.",
    "The audit's bound is the epsilon that it showed. The ceiling is the largest epsilon that so many guesses could "
    "show. A bound below the claim does not confirm the claim.",
    "An (epsilon, delta) claim depends on a proof, on code that does what the proof assumes, and on noise that nobody "
    "can predict.",
)


SHAREABLE_LIMITS = (
    "This copy contains only what is public and what a budget has paid for. Attacks, audits and exact figures depend "
    "on private triples. Ask the owner whether they contradict the promise.",
    LIMITS[-1],
)


ORDINARY = (
    "The attacked triples are real triples (design R). The shadow attack knows every triple except which of them are "
    "in the data: this is the worst case, not a likely one."
)


def limits(configuration: Configuration) -> tuple[str, ...]:
    """What the page's numbers cannot say."""
    if configuration.experiment.canary_source == "real":
        return (ORDINARY, *LIMITS)
    return (*described(configuration).canaries, *LIMITS)


def asked_about(asked: int, canaries: int) -> str:
    """How many canaries a noisy copy asked about, and what to do if they are few.

    >>> asked_about(900, 1000)
    'The copy asked about 900 of the 1,000 canaries.'
    """
    said = f"The copy asked about {asked:,} of the {canaries:,} canaries."
    if 2 * asked >= canaries:
        return said
    more = "To have more of them asked, use `--canary-source likely` or a larger epsilon."
    return f"{said} Only the counts reveal something about the others. {more}"


def released(configuration: Configuration) -> tuple[str, ...]:
    """What leaves a client."""
    known = RELEASED.get(
        configuration.federation.strategy, (f"What strategy {configuration.federation.strategy} shares.",)
    )
    return (
        (*known, "At the end: the model, to everybody who gets it.")
        if configuration.federation.strategy != "isolated"
        else known
    )


def trusted(configuration: Configuration, promised: bool) -> str:
    """Whom a client must trust."""
    if configuration.federation.strategy == "pooled":
        return "Everybody who has the pooled data."
    if configuration.federation.strategy == "isolated":
        return "Nobody: nothing leaves a client, except its own model if it shares that."
    if promised:
        return (
            "Only its own machine and its own random numbers. The server and all other clients may read every message "
            "and may send anything back."
        )
    return "The server and every other client, fully: vectors are sent without protection."


def not_covered(configuration: Configuration, names: NameRule | None) -> tuple[str, ...]:
    """What the promise does not cover."""
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
            "RESEARCH SEED: anyone who knows the seed can repeat the noise of this run and subtract it. No promise "
            "holds. Never release such a run."
        )
    if defended:
        return (
            "The noise came from the operating system's generator and was not stored. The seed repeats only start "
            "values and negatives."
        )
    return "The seed repeats the run exactly. The run has no noise."
