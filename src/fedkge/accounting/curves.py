"""Epsilon over rounds, as numbers and as a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from fedkge.accounting.accountants import Accountant, merged
from fedkge.base.errors import ConfigurationError
from fedkge.mechanisms.events import Charge

Curve: TypeAlias = list[tuple[int, float]]
"""Rounds, and the epsilon of everything up to them."""

TITLE_WIDTH = 85
ENDINGS = (".svg", ".png", ".pdf")


@runtime_checkable
class Reusing(Protocol):
    """An accountant that is quicker when it knows all charges before it counts parts of them."""

    def on_one_grid(self, charges: Sequence[Charge]) -> Accountant:
        """The quicker one."""
        ...


def milestones(rounds: int, points: int) -> list[int]:
    """At most `points` rounds, evenly spread; the last round is one of them.

    >>> milestones(100, 5), milestones(3, 5)
    ([20, 40, 60, 80, 100], [1, 2, 3])
    """
    if rounds <= points:
        return list(range(1, rounds + 1))
    return sorted({math.ceil(rounds * number / points) for number in range(1, points + 1)})


def epsilon_over_rounds(
    rounds: Sequence[Sequence[Charge]], delta: float, accountant: Accountant, points: int = 10
) -> Curve:
    """The epsilon after some of the rounds; each takes up the work of the one before.

    >>> from fedkge.accounting.accountants import make_accountant
    >>> from fedkge.mechanisms.events import Gaussian
    >>> curve = epsilon_over_rounds([[Charge(Gaussian(10))]] * 4, 1e-5, make_accountant("rdp"), points=2)
    >>> [(number, round(epsilon, 2)) for number, epsilon in curve]
    [(2, 0.55), (4, 0.79)]
    """
    if isinstance(accountant, Reusing):
        accountant = accountant.on_one_grid([charge for part in rounds for charge in part])
    return [
        (number, accountant.epsilon(merged(charge for part in rounds[:number] for charge in part), delta))
        for number in milestones(len(rounds), points)
    ]


def check_plot_path(path: Path) -> None:
    """Refuse a file that cannot be drawn, before the numbers are computed."""
    if path.suffix not in ENDINGS:
        raise ConfigurationError(f"{path}: expected a picture that ends in {', '.join(ENDINGS)}, got {path.suffix!r}")


def plot_curves(
    curves: Mapping[str, Curve], path: Path, title: str, budget: float | None = None, across: str = "round"
) -> None:
    """Draw epsilon over rounds, one line per name; dashed where the name says that it is not sound."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    check_plot_path(path)
    with mpl.rc_context({"font.size": 10, "svg.hashsalt": "fedkge", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        axes = figure.add_subplot()
        for name, curve in curves.items():
            known = [(number, epsilon) for number, epsilon in curve if math.isfinite(epsilon)]
            if not known:
                continue
            style = "--" if "NOT SOUND" in name else "-"
            axes.plot(*zip(*known, strict=True), style, marker="o", markersize=3.5, label=name)
        if budget is not None:
            axes.axhline(budget, color="0.35", linestyle=":", label=f"budget {budget:g}")
        axes.set(xlabel=across, ylabel="epsilon", xlim=(0, None), ylim=(0, None))
        axes.set_title(textwrap.fill(title, TITLE_WIDTH), loc="left", fontsize=10)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
