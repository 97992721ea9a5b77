"""What the paper left open, part by part, and the choice that was made, with the numbers of settings and cells."""

from __future__ import annotations

from collections.abc import Callable

from fedkge.configuration import Configuration
from fedkge.configuration.presets import COPYING
from paper.cells import Key
from paper.names import data_name, listed, model_name, short
from paper.plan import defended_attacks, undefended_attacks
from paper.rules import Facts
from paper.settings import Settings
from paper.worth import POPULARITY


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number != 1 else ''}"


def _federation(settings: Settings, defence: str, model: str = "") -> Configuration | None:
    """An as-published federation of the first data set; None where the settings do not have this defence."""
    table = settings.part("table-utility")
    if defence not in settings.federations.get("published", {}):
        return None
    place = (table["data"][0], model or table["models"][0])
    return settings.configuration(Key(*place, "published", defence, 0.0, settings.seeds[0]))


def _training(settings: Settings) -> list[str]:
    """How long undefended federations train; models that train alike share a phrase."""
    found: dict[tuple[int, int], list[str]] = {}
    for model in settings.part("table-attacks")["models"]:
        if one := _federation(settings, "none", model):
            found.setdefault((one.training.rounds, one.training.local_epochs), []).append(model_name(model))
    lengths = [
        f"{_counted(rounds, 'round')} of {_counted(epochs, 'epoch')}"
        + (f" ({listed(models)})" if len(found) > 1 else "")
        for (rounds, epochs), models in found.items()
    ]
    return [f"Rounds and epochs are not printed: {listed(lengths)}."] if lengths else []


def _attack_choices(settings: Settings) -> tuple[str, ...]:
    attacks, one = undefended_attacks(settings), _federation(settings, "none")
    said = []
    if one:
        drawn = "entities drawn at random" if one.data.split == "entity" else f"dealt by {one.data.split}"
        said += [
            f"How many clients there are, and how they split a graph, is not printed: {one.data.clients} clients, "
            f"{drawn}.",
            *_training(settings),
            f"The random targets, half of them trained on, are read as canaries ({one.experiment.canaries:,} here), "
            f"both ends in "
            "the overlap of adversary and victim. Real triples against held-out real ones stand beside them.",
        ]
    often = (
        f"groups of {attacks.group_size:,}, {_counted(attacks.waiting_rounds, 'round')} of waiting, played every "
        f"{_counted(attacks.cia_every, 'round')}{_oftener(settings)}; the other attacks every {attacks.every}"
    )
    return (
        *said,
        f"How many targets CIA reverses at once, and how long it waits, is not printed: {often}.",
        "Forms: the one ending in -published is the paper's formula; the others are repairs of ours, and the best of "
        "them was chosen with the answers at hand, so read it as the best that was found. Intervals are not "
        "corrected for that.",
    )


def _oftener(settings: Settings) -> str:
    """Where CIA is played at other rounds than elsewhere."""
    table, usual = settings.part("table-attacks"), undefended_attacks(settings).cia_every
    places = [(data, model) for data in table["data"] for model in table["models"]]
    other = {place: every for place in places if (every := undefended_attacks(settings, *place).cia_every) != usual}
    said = [f"every {every} with {model_name(model)} on {data_name(data)}" for (data, model), every in other.items()]
    return f" ({listed(said)})" if said else ""


def _utility_choices(settings: Settings, facts: Facts) -> tuple[str, ...]:
    said = [
        "The paper ranks tails alone, and counts 14,505 entities, those of the training triples: hence as published "
        "only names that a client trained on. Sound: all test triples, tails and heads.",
        *_length(settings),
        *_split(facts),
        "The paper's ε is by its own formulas, for a mechanism that trains relations without noise; the sound "
        "column pays for relations too, and for every look at a triple. The same number is not the same promise.",
    ]
    if flames := _federation(settings, "dp-flames"):
        failure = f"{flames.privacy.test_failure:.0e}".replace("e-0", "e-")
        said.append(f"The failure probability of the test is not printed: {failure}.")
    if _federation(settings, "dp-flames-untested"):
        said.append(
            "“Half the tests pass” is not in the paper: it shows what the selection would do if its test let steps "
            "through. Its ε means nothing."
        )
    several = len(settings.seeds)
    said.append(
        f"Intervals are 95 % over {several} seeds where several were run; elsewhere there is one seed."
        if several > 1
        else "One seed: there are no intervals over seeds here."
    )
    return tuple(said)


def _length(settings: Settings) -> list[str]:
    """How long defended federations train."""
    names = {"dpsgd": "the baseline", "dp-flames": "DP-FLames"}
    found = [(name, one) for key, name in names.items() if (one := _federation(settings, key))]
    if not found:
        return []
    each = listed(
        [
            f"{_counted(one.training.rounds, 'round')} of {_counted(one.training.local_epochs, 'epoch')} for {name}"
            for name, one in found
        ]
    )
    return [
        f"How long a defended federation trains is not printed: {each}. A budget that is not used up by then shows the "
        "last round, so that several budgets may show the same model: marked †, with the ε that the printed formulas "
        "give."
    ]


def _split(facts: Facts) -> list[str]:
    """How easy the clients' graphs are, by the one ranking that needs no model."""
    found: dict[str, list[float]] = {}
    for cell in facts.cells:
        counting = cell.controls.get(POPULARITY, {}).get("seen", {}).get("tail.mrr")
        if cell.key.defence == "none" and counting is not None:
            found.setdefault(cell.key.data, []).append(counting)
    said = []
    for data, values in found.items():
        span = dict.fromkeys((short(min(values)), short(max(values))))
        printed = [row.paper.mrr for row in facts.utility.rows if row.data == data and row.paper and not row.epsilon]
        beside = f" (undefended models of the paper: {short(min(printed))} to {short(max(printed))})" if printed else ""
        said.append(f"{' to '.join(span)} on {data_name(data)}{beside}")
    text = (
        "The split is not published, and it decides how easy the ranking is. With ours, counting alone has a tail MRR "
        f"of {listed(said)}: compare models with that, and only then with the paper."
    )
    return [text] if said else []


def _rounds_choices(settings: Settings) -> tuple[str, ...]:
    part = settings.part("figure-rounds")
    names, data = listed([model_name(one) for one in part["models"]]), listed([data_name(one) for one in part["data"]])
    return (
        f"The data set is not named: {data} here. Models: {names}; the paper shows TransE and RotatE.",
        "As published: threshold chosen on the targets, ROC of the best round. Sound: threshold calibrated on other "
        "triples, ROC of the last round.",
    )


OF_COPIES = (
    f"The targets are random triples, as in the paper, and {COPYING}, a noisy copy, asks about hardly any of them "
    "before its budget is large: up to there its curve says little, and epsilon is the measure. The frontier "
    "(benchmarks/results/utility) has likely targets too."
)


def _defence_choices(settings: Settings) -> tuple[str, ...]:
    waits = defended_attacks(settings).waiting_rounds
    return (
        "The paper prints the figure without numbers. Attacks are played at the round where a budget ends; CIA waits "
        f"{_counted(waits, 'round')}.",
        "As published: highest F1 of any form, threshold chosen on the targets. Sound: the form with the highest AUC, "
        "its F1 at a calibrated threshold, which may lie below the floor.",
        "SI as printed, by clusters, is not played here: it stays at the floor without a defence.",
        *([OF_COPIES] if COPYING in settings.part("figure-defence").get("sound", ()) else ()),
        *_unlike(settings),
    )


def _unlike(settings: Settings) -> list[str]:
    """What else than the defence differs between the dotted line and the others."""
    before, after = undefended_attacks(settings), defended_attacks(settings)
    differs = []
    undefended = _federation(settings, "none")
    found = [(name, one) for name in ("dpsgd", "dp-flames") if (one := _federation(settings, name))]
    if undefended and found:
        names = {"dpsgd": "the baseline", "dp-flames": "DP-FLames"}
        each = listed([f"{one.training.rounds * one.training.local_epochs} under {names[name]}" for name, one in found])
        differs.append(
            f"epochs ({undefended.training.rounds * undefended.training.local_epochs} without a defence, {each} as "
            f"published)"
        )
    if before.waiting_rounds != after.waiting_rounds:
        differs.append(
            f"how long CIA waits ({_counted(before.waiting_rounds, 'round')} without a defence, "
            f"{after.waiting_rounds} with one)"
        )
    if before.group_size != after.group_size:
        differs.append(f"how many targets it reverses at once ({before.group_size:,}, {after.group_size:,})")
    return [f"Not all of a fall is the defence's doing. These differ too: {'; '.join(differs)}."] if differs else []


def _tradeoff_choices(settings: Settings) -> tuple[str, ...]:
    budgets = _counted(len(settings.part("figure-tradeoff").get("budgets", ())), "budget")
    return (
        "The mean is over the attacks that fit the model: SI does not fit bilinear ones. The cells are those of the "
        f"figure above, at {budgets}.",
        "As published: tail MRR and F1 with the threshold chosen on the targets. Sound: both-sided MRR and "
        "calibrated F1.",
    )


CHOICES: dict[str, Callable[[Settings], tuple[str, ...]]] = {
    "table-attacks": _attack_choices,
    "figure-rounds": _rounds_choices,
    "figure-defence": _defence_choices,
    "figure-tradeoff": _tradeoff_choices,
}


def choices(part: str, settings: Settings, facts: Facts) -> tuple[str, ...]:
    """What was chosen for one part."""
    return _utility_choices(settings, facts) if part == "table-utility" else CHOICES[part](settings)
