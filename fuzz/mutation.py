"""Mutations that know what a message looks like: they change its header, its layout or its data, and keep the rest."""

from __future__ import annotations

import random
from typing import Any

from tests.deploy.every_message import joined, parts

NASTY: tuple[Any, ...] = (
    0, 1, -1, 7, 2**31, 2**53 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, 0.5, 1e6, 1e308, -1e308,
    True, False, None, "", "entities", "relations", "F32", "F16", "I64", "U8", "F64", "Upload", "Greeting", "\x1b[2J",
    "\u202e", "x" * 3000, [], {}, [[]], [0, 1], [1, 0], [2**62, 0], [0, 2**31], [1] * 40, {"entities": 1}, {"\x1b": 1},
)  # fmt: skip


def mutated_message(content: bytes, seed: int) -> bytes | None:
    """The message with a few changes to its structure; None where these bytes are no message."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    try:
        header, layout, data = parts(content)
        for _ in range(chance.randint(1, 3)):
            where = chance.random()
            if where < 0.45:
                header = mutated(header, chance)
            elif where < 0.9:
                changed = mutated(layout, chance)
                layout = changed if isinstance(changed, dict) else layout
            else:
                data = data[: chance.randint(0, len(data))] + chance.randbytes(chance.randint(0, 16))
        return joined(header, layout, data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def mutated(value: Any, chance: random.Random) -> Any:
    """A JSON value with one thing in it replaced, removed, added or renamed."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        others = {other: item for other, item in value.items() if other != key}
        how = chance.randrange(8)
        if how < 3:  # removed, renamed, added
            return {**(value if how == 2 else others), **({str(chance.choice(NASTY)): value[key]} if how else {})}
        return {**value, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], mutated(value[place], chance), *value[place + chance.randrange(2) :]]
    if isinstance(value, int) and not isinstance(value, bool) and chance.random() < 0.5:
        return value + chance.choice((-8, -4, -1, 1, 4, 8))
    return chance.choice(NASTY)
