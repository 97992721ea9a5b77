"""site.toml: strict, in plain words, and paths relative to itself."""

from pathlib import Path
from typing import Any

import pytest

from fedkge.base.errors import ConfigurationError
from fedkge.deploy.canonical import Rules
from fedkge.deploy.site_settings import SiteSettings, parse_site, read_site
from fedkge.mechanisms import SELECTIONS

LEAST: dict[str, Any] = {
    "name": "north",
    "federation": "study",
    "graph": "g.tsv",
    "entities": "from-triples",
    "privacy": {"epsilon": 8},
}

FILE = """
name = "north"
federation = "study"
graph = "data/graph.tsv"
entities = "entities.txt"
least-owners = 3

[privacy]
defence = "dpsgd"
epsilon = 2.5
row-clip = 0.5

[limits]
rounds = 12
least-noise = 0.7

[names]
case = "fold"
collisions = "merge"

[names.prefixes]
"http://x/under_score/" = ""
"""


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(FILE, encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "graph.tsv").touch()
    site = read_site(tmp_path / "site.toml")
    assert site.graph == str(tmp_path / "data" / "graph.tsv")
    assert site.entities == tmp_path / "entities.txt"
    assert site.run == tmp_path / "run"
    assert site.relations is None
    assert dict(site.privacy) == {"defence": "dpsgd", "epsilon": 2.5, "row-clip": 0.5}
    assert (site.limits.rounds, site.limits.least_noise, site.least_owners) == (12, 0.7, 3)
    assert site.names.rules == Rules("NFC", "fold", {"http://x/under_score/": ""})


def test_a_path_from_the_root_stays(tmp_path: Path) -> None:
    assert parse_site({**LEAST, "key": "/secrets/key"}, folder=tmp_path).key == Path("/secrets/key")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilom": 3}, "unknown key 'epsilom'"),
        ({"grahp": "x"}, "unknown key 'grahp': did you mean graph"),
        ({"limits": {"round": 3}}, "unknown key 'limits.round': did you mean rounds"),
        ({"names": {"unicode": "NFC"}}, "unknown key 'names.unicode': did you mean unicode-form"),
        ({"privacy": {"epsilon": 8, "nosie": 1}}, "privacy: unknown key 'nosie': did you mean noise"),
        ({"privacy": {"epsilon": 8, "rounds": 3}}, "privacy: unknown key 'rounds'"),
        ({"privacy": {}}, 'privacy: expected a privacy budget .epsilon = 8., or an explicit defence = "none"'),
        ({"privacy": {"delta": 1e-6}}, "privacy: expected a privacy budget"),
        ({"privacy": "strong"}, "privacy: "),
        *(
            (
                {"privacy": {"epsilon": 8, "defence": "dpsgd", "selection": selection}},
                f"privacy: NOT private, so a site does not run it: selection {selection} is the paper's, as printed",
            )
            for selection in sorted(SELECTIONS)
            if not SELECTIONS[selection].is_private
        ),
        ({"limits": {"rounds": 0}}, "limits.rounds: .*greater than or equal to 1, got 0"),
        ({"limits": {"least-noise": float("inf")}}, "limits.least-noise"),
        ({"least-owners": 0}, "least-owners"),
        ({"names": {"case": "upper"}}, "names.case"),
        ({"names": {"collisions": "ignore"}}, "names.collisions"),
        ({"name": ""}, "name: "),
        ({"alignment": "plain"}, "alignment"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^site.toml: {message}"):
        parse_site({**LEAST, **change})


@pytest.mark.parametrize("missing", sorted(set(LEAST) - {"entities"}))
def test_what_has_no_default_must_be_there(missing: str) -> None:
    with pytest.raises(ConfigurationError, match=f"site.toml: {missing}: Field required"):
        parse_site({key: value for key, value in LEAST.items() if key != missing})


def test_where_names_come_from_must_be_said() -> None:
    without = {key: value for key, value in LEAST.items() if key != "entities"}
    with pytest.raises(ConfigurationError, match=r"entities: expected a source .* got none") as refused:
        parse_site(without)
    for choice in ('"names.txt"', '"threshold"', '"from-triples"', "federation check"):
        assert choice in str(refused.value)
    found = {value: parse_site({**without, "entities": value}).names_are for value in ("threshold", "names.txt")}
    assert found == {"threshold": "threshold", "names.txt": "listed"}
    assert parse_site({**without, "entities": "names.txt"}, folder=Path("/site")).entities == Path("/site/names.txt")
    with pytest.raises(ConfigurationError, match="entities"):
        parse_site({**without, "entities": 3})


def test_no_defence_must_be_said() -> None:
    assert parse_site({**LEAST, "privacy": {"defence": "none"}}).privacy == {"defence": "none"}


def test_files_that_are_none_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        read_site(tmp_path / "site.toml")
    with pytest.raises(ConfigurationError, match="expected a plain file, got a folder"):
        read_site(tmp_path)
    (tmp_path / "site.toml").write_text("name = ", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="expected TOML"):
        read_site(tmp_path / "site.toml")


def test_a_site_cannot_be_changed() -> None:
    site = SiteSettings(**LEAST)
    with pytest.raises(Exception, match="frozen"):
        site.name = "south"  # type: ignore[misc]
    with pytest.raises(Exception, match="frozen"):
        site.limits.rounds = 5  # type: ignore[misc]
