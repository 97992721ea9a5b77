"""`fedkge federation check`: a site knows what it would give away before it does."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import ConfigurationError, DataError, PolicyError
from fedkge.cli.app import app
from fedkge.defences.noisy_copy import NoisyCopy
from fedkge.defences.planning import client_defence
from fedkge.deploy.keys import create_key
from fedkge.deploy.policy import accept
from fedkge.deploy.preview import preview
from fedkge.deploy.site_graph import canonical_site, raw_graph
from fedkge.deploy.site_settings import parse_site, read_site
from fedkge.federation.client import Client, ClientPlan
from fedkge.federation.messages import Fit
from fedkge.runs.directory import RunDirectory

SITE = """
name = "north"
federation = "study"
graph = "graph.tsv"
entities = "from-triples"
{more}
[privacy]
{privacy}
[names]
case = "fold"
collisions = "merge"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"Name{i % 40}\tknows\tname{i * 7 % 41}\n" for i in range(123)]
    (tmp_path / "graph.tsv").write_text("".join(lines), encoding="utf-8")
    create_key(tmp_path / "consortium.key")
    write(tmp_path, "epsilon = 4")
    return tmp_path


def write(folder: Path, privacy: str, more: str = "") -> Path:
    path = folder / "site.toml"
    path.write_text(SITE.format(privacy=privacy, more=more), encoding="utf-8")
    return path


def checked(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["federation", "check", *map(str, arguments)])
    return done.exit_code, done.output


def test_it_says_what_is_promised_and_what_leaves(folder: Path) -> None:
    code, text = checked(folder / "site.toml")
    assert code == 0, text
    assert "epsilon 4 at delta 1e-05 (noisy counts of scale" in text.replace("\n", " ")
    told = "41 pseudonyms of entities; its number of triples with noise (standard deviation 28.3), drawn when it joins"
    assert told in " ".join(text.split())
    assert "from triples: 0 of 123 triples (0.0 %) are the only mention of a name" in " ".join(text.split())
    assert "defended rows that enough sites own" in text
    assert "names became" in text
    assert "name7" not in text.lower()


def test_it_says_what_a_guess_is_worth_and_what_copies_hold(folder: Path) -> None:
    """Before anything is drawn: the worth by public numbers, and how much copies of other graphs held."""
    found = json.loads(checked(folder / "site.toml", "--json")[1])
    assert found["guess"]["typical"] == pytest.approx(0.88, abs=0.015)
    assert found["guess"]["answer"] == pytest.approx(0.55, abs=0.006)
    assert "5.2 % of codex-s's triples with precision 0.76" in found["holds"]
    text = " ".join(checked(folder / "site.toml")[1].split())
    assert "the guess is right with a chance of 87.8 %" in text
    assert "Known only once the copy is drawn" in text
    for privacy in ('defence = "none"', "epsilon = 4\nnoise-seed = 1"):
        assert json.loads(checked(write(folder, privacy), "--json")[1])["guess"] is None


def test_of_a_copy_that_is_drawn_it_says_what_that_one_holds(folder: Path) -> None:
    """The estimate reads the copy and the public number of triples: with the same copy, any triples get the same."""
    path = write(folder, "epsilon = 8\npublic-triples = 130")
    settings = read_site(path)
    graph = canonical_site(settings, raw_graph(settings)).graph
    directory = RunDirectory(settings.run)
    directory.checkpoints.mkdir(parents=True)
    ledger, options = Ledger.open(directory.ledger), accept(settings.limits.usual, settings)
    defence = client_defence(options, "north", graph, ledger)
    plan = ClientPlan(options, 7, 1, ("entities",), 1, defence=defence, ledger=ledger)
    client = Client("north", graph, plan, directory.checkpoints)
    client.handle(Fit(1, {"entities": client.embedding.tables.entities.copy()}))
    assert isinstance(client.released, NoisyCopy)
    said = client.released.holding(130).words
    assert json.loads(checked(path, "--json")[1])["holds"] == said
    lines = (folder / "graph.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "graph.tsv").write_text("".join(lines[1:]), encoding="utf-8")
    assert json.loads(checked(path, "--json")[1])["holds"] == said


def test_names_are_shown_only_when_asked_for(folder: Path) -> None:
    assert "name27: Name27, name27" in checked(folder / "site.toml", "--names")[1]
    assert "ame7" not in checked(folder / "site.toml", "--json")[1]


def test_terms_that_nobody_named_stay_within_the_limits(folder: Path) -> None:
    path = folder / "site.toml"
    path.write_text(path.read_text(encoding="utf-8") + "[limits]\nrounds = 3\n", encoding="utf-8")
    code, text = checked(path)
    assert code == 0, text
    assert "at most 3 rounds" in text


def test_a_graph_that_is_not_there_is_named_with_its_folder(folder: Path) -> None:
    (folder / "graph.tsv").unlink()
    code, text = checked(folder / "site.toml")
    assert code == DataError.exit_code
    assert "no such file or folder" in text
    assert "data set" not in text


def test_nothing_is_written(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    checked(folder / "site.toml")
    assert sorted(folder.rglob("*")) == before


def test_json_holds_the_whole_configuration_but_no_path(folder: Path) -> None:
    code, text = checked(folder / "site.toml", "--json")
    record = json.loads(text)
    assert code == 0
    assert record["configuration"]["epsilon"] == 4.0
    assert record["names"]["entities"]["collisions"] > 0
    assert str(folder) not in text


def test_without_a_defence_it_warns(folder: Path) -> None:
    code, text = checked(write(folder, 'defence = "none"'))
    assert code == 0
    assert "UNDEFENDED" in text
    assert "nothing: this site has no defence" in text
    assert "WARNING" in text


def test_a_research_seed_of_the_noise_is_called_by_its_name(folder: Path) -> None:
    assert (
        "NOT PRIVATE: the noise comes from a research seed" in checked(write(folder, "epsilon = 4\nnoise-seed = 1"))[1]
    )


def test_a_selection_that_promises_nothing_is_refused(folder: Path) -> None:
    code, text = checked(write(folder, 'epsilon = 4\ndefence = "dpsgd"\nselection = "ptr-published"'))
    assert code == ConfigurationError.exit_code
    assert "NOT private" in text


def test_terms_that_the_site_refuses_are_refused_here_too(folder: Path) -> None:
    site = parse_site(
        {
            "name": "n",
            "federation": "s",
            "graph": "graph.tsv",
            "entities": "from-triples",
            "privacy": {"epsilon": 4},
            "limits": {"rounds": 3},
        },
        folder=folder,
    )
    with pytest.raises(PolicyError, match="rounds = 9"):
        preview(site, {"rounds": 9})
    assert "at most 3 rounds" in preview(site, {"rounds": 3}).leaves["each round"]


def test_a_federation_file_gives_the_terms(folder: Path) -> None:
    terms = folder / "federation.toml"
    terms.write_text('sites = ["north", "south"]\n[training]\nrounds = 500\n', encoding="utf-8")
    code, text = checked(folder / "site.toml", "--terms", terms)
    assert code == 11
    assert "north: the server asks for rounds = 500, this site allows at most 100" in text


def rare(folder: Path, name: str = "graph.tsv") -> None:
    """Forty triples, each the only mention of its head, among names that many triples mention."""
    lines = [f"n{i % 20}\tknows\tn{i * 7 % 19}\n" for i in range(2000)]
    lines += [f"secret{i}\tknows\tn{i % 20}\n" for i in range(40)]
    (folder / name).write_text("".join(dict.fromkeys(lines)), encoding="utf-8")


def test_sole_mentions_are_counted_for_the_site(folder: Path) -> None:
    rare(folder)
    code, text = checked(folder / "site.toml")
    assert code == 0, text
    total = 380 + 40
    assert (
        f"40 of {total} triples (9.5 %) are the only mention of a name, and such triples are NOT protected"
        in " ".join(text.split())
    )
    record = json.loads(checked(folder / "site.toml", "--json")[1])
    assert record["sole_mentions"] == 40


def test_a_threshold_is_previewed_without_drawing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rare(folder)
    monkeypatch.setattr("fedkge.defences.name_release.released_names", lambda *_: pytest.fail("nothing is drawn"))
    path = folder / "site.toml"
    path.write_text(path.read_text().replace('"from-triples"', '"threshold"'), encoding="utf-8")
    before = sorted(folder.rglob("*"))
    code, text = checked(path)
    assert code == 0, text
    said = " ".join(text.split())
    assert "pseudonyms of entities that many triples mention, by a noisy count (epsilon 1)" in said
    assert "by a threshold of 26 mentions with noise, paid for" in said
    assert "about 41 of 60 names, and 59 triples with one, stay out of everything" in said
    assert sorted(folder.rglob("*")) == before
    leaves = json.loads(checked(path, "--json")[1])["leaves"]
    graph = folder / "graph.tsv"
    graph.write_text("".join(graph.read_text().splitlines(keepends=True)[25:]), encoding="utf-8")
    assert json.loads(checked(path, "--json")[1])["leaves"] == leaves, "others read it: no function of exact triples"


def test_a_list_tells_nothing_about_triples(folder: Path) -> None:
    names = sorted({f"n{i}" for i in range(20)} | {f"secret{i}" for i in range(40)} | {"nobody"})
    (folder / "names.txt").write_text("\n".join(names), encoding="utf-8")
    rare(folder)
    path = folder / "site.toml"
    path.write_text(path.read_text().replace('"from-triples"', '"names.txt"'), encoding="utf-8")
    code, text = checked(path)
    assert code == 0, text
    assert "61 pseudonyms of entities" in text
    assert "from a list: they reveal nothing about triples" in " ".join(text.split())


def test_a_file_from_before_the_choice_is_refused(folder: Path) -> None:
    path = folder / "site.toml"
    path.write_text(path.read_text().replace('entities = "from-triples"\n', ""), encoding="utf-8")
    code, text = checked(path)
    assert code == ConfigurationError.exit_code
    assert "expected a source for the names of entities" in " ".join(text.split())


def test_a_large_epsilon_gets_a_warning(folder: Path) -> None:
    assert "Epsilon 16 is above 10" in " ".join(checked(write(folder, "epsilon = 16"))[1].split())
    assert "is above 10" not in checked(write(folder, "epsilon = 8"))[1]
