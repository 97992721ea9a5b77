"""What people read: data sets, models, defences and attacks by their names in the paper."""

from __future__ import annotations

DATA = {"fb15k-237": "FB15k-237", "nell-995": "NELL-995"}
MODELS = {"transe": "TransE", "rotate": "RotatE", "distmult": "DistMult", "complex": "ComplEx"}
DEFENCES = {
    "none": "no defence",
    "dpsgd": "baseline (DPSGD)",
    "dp-flames": "DP-FLames",
    "dp-flames-adaptive": "DP-FLames-Adp",
    "dp-flames-untested": "DP-FLames, half the tests pass",
    "noisy-steps": "noisy steps (ours)",
    "recommended": "recommended (ours)",
}
FAMILIES = {"si": "SI", "cip": "CIP", "cia": "CIA", "ours": "ours"}
COLUMNS = {"published": "as published", "sound": "sound"}
DISTANCE, BILINEAR = ("transe", "rotate"), ("distmult", "complex")


def data_name(name: str) -> str:
    """A data set as people write it.

    >>> data_name("nell-995"), data_name("my-own")
    ('NELL-995', 'my-own')
    """
    return DATA.get(name, name)


def model_name(name: str) -> str:
    """A model as people write it.

    >>> model_name("complex")
    'ComplEx'
    """
    return MODELS.get(name, name)


def defence_name(name: str, epsilon: float = 0.0) -> str:
    """A defence as the paper calls it, with its budget.

    >>> defence_name("dp-flames-adaptive", 16.0), defence_name("none")
    ('DP-FLames-Adp, ε 16', 'no defence')
    """
    return DEFENCES.get(name, name) + (f", ε {epsilon:g}" if epsilon else "")


def setting_name(name: str) -> str:
    """A setting as the paper calls it.

    >>> setting_name("dp-flames-adaptive, epsilon 16"), setting_name("sound")
    ('DP-FLames-Adp, epsilon 16', 'sound')
    """
    first, comma, rest = name.partition(",")
    return defence_name(first) + comma + rest


def family_name(name: str) -> str:
    """An attack as the paper calls it.

    >>> family_name("cip"), family_name("my-own")
    ('CIP', 'my-own')
    """
    return FAMILIES.get(name, name)


def listed(words: list[str] | tuple[str, ...]) -> str:
    """Words in a sentence.

    >>> listed(["SI", "CIP", "CIA"]), listed(["SI"]), listed([])
    ('SI, CIP and CIA', 'SI', 'none')
    """
    if not words:
        return "none"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def short(value: float | None) -> str:
    """A share as tables of many numbers write it.

    >>> short(0.3606), short(1.0), short(-0.0123), short(None)
    ('.361', '1.000', '-.012', 'none')
    """
    return "none" if value is None else f"{value:.3f}".replace("0.", ".", 1)
