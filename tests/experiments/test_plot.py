"""The picture of attacks: the curves that it holds, and files that are the same every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedkge.audit.metrics import attack_metrics
from fedkge.base.errors import ConfigurationError
from fedkge.experiments.outcomes import Outcome
from fedkge.experiments.plot import draw, plot_outcomes


def outcomes() -> list[Outcome]:
    random = np.random.default_rng(1)
    members = np.arange(400) < 200
    made = []
    for attack, adversary in (("cip", "client"), ("si-centres", "server")):
        for design in ("A", "C"):
            for number in (5, 10):
                metrics = attack_metrics(random.normal(size=400) + members, members).as_dict()
                made.append(Outcome(attack, adversary, design, number, metrics))
    return made


def test_each_design_has_a_roc_and_two_curves_by_round() -> None:
    figure = draw(outcomes())
    assert len(figure.axes) == 6
    for roc, best, area in zip(*(figure.axes[place::3] for place in range(3)), strict=True):
        assert (roc.get_xscale(), roc.get_yscale()) == ("log", "log")
        assert [line.get_label() for line in roc.lines[:2]] == ["cip (client)", "si-centres (server)"]
        chance = roc.lines[2]
        np.testing.assert_array_equal(chance.get_xdata(), chance.get_ydata())
        for axes, key in ((best, "best F1"), (area, "AUC")):
            assert axes.get_ylabel() == key
            assert list(axes.lines[0].get_xdata()) == [5, 10]
    values = [one.metrics["auc"]["value"] for one in outcomes() if (one.attack, one.design) == ("cip", "A")]
    assert list(figure.axes[2].lines[0].get_ydata()) == values


def test_the_file_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        plot_outcomes(outcomes(), tmp_path / "pictures" / name)
    first, second = ((tmp_path / "pictures" / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert first == second
    assert b"<svg" in first


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ends with \.svg, \.pdf, \.png"):
        plot_outcomes(outcomes(), tmp_path / "picture.gif")
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        draw([])
