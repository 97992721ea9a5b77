"""What an adversary's guess about one triple is worth, in words; the numbers are `accounting.posterior`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedkge.base.numbers import percent

if TYPE_CHECKING:
    from fedkge.accounting.posterior import GuessWorth


def guess_words(guess: GuessWorth) -> str:
    """The chances in plain words.

    >>> from fedkge.accounting.posterior import GuessWorth
    >>> print(guess_words(GuessWorth(worst=0.982, typical=0.881, delta=0.0))[:105])
    The adversary sees every release, knows all other triples, and guesses whether the client holds one more.
    """
    copied = guess.answer is not None
    chance = f"{'' if copied else 'at most '}{percent(guess.typical)} (a coin: 50 %)"
    said = [
        f"The adversary sees {'the whole copy' if copied else 'every release'}, knows all other triples, and guesses "
        f"whether the client holds one more. At even odds, the guess is right with a chance of {chance}."
    ]
    if guess.unasked is not None:
        said.append(f"If the copy did not ask about the triple, the chance is {percent(guess.unasked)}.")
    if guess.counts_agree is not None:
        said.append(f"If all counts agree, they alone make the adversary {percent(guess.counts_agree)} sure.")
    if guess.answer is not None:
        said.append(f"One response alone is right with a chance of {percent(guess.answer)}.")
    up_to = f"Up to delta ({guess.delta:g}), no" if guess.delta else "No"
    return " ".join([*said, f"{up_to} outcome makes the adversary surer than {percent(guess.worst)}."])
