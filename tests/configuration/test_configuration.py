from __future__ import annotations

import re
import tomllib
from types import SimpleNamespace
from typing import Annotated, Any, get_args

import pytest
from annotated_types import Ge, Gt, Le, Lt
from hypothesis import given
from hypothesis import strategies as st
from pydantic import create_model

from fedkge.base.errors import ConfigurationError
from fedkge.configuration import (
    OPTIONS,
    SECTIONS,
    Configuration,
    Mark,
    Who,
    decided_by,
    flat_options,
    marked,
    read_toml,
)
from fedkge.configuration.options import OptionTable
from fedkge.configuration.privacy import PrivacySection
from fedkge.configuration.section import Decided, by_server, by_server_alone
from fedkge.defences import DEFENCES, parse

FIELDS = {name: option.info for name, option in OPTIONS.items()}
PLAIN = st.text(st.characters(codec="utf-8"), max_size=20)


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Everything that a field allows, read off its type and limits."""
    kind, limits = FIELDS[name].annotation, FIELDS[name].metadata
    low = next((limit.ge for limit in limits if isinstance(limit, Ge)), None)
    above = next((limit.gt for limit in limits if isinstance(limit, Gt)), None)
    high = next((limit.le for limit in limits if isinstance(limit, Le)), None)
    below = next((limit.lt for limit in limits if isinstance(limit, Lt)), None)
    if kind is bool:
        return st.booleans()
    if kind == bool | None:
        return st.none() | st.booleans()
    if kind is str:
        return PLAIN
    if kind is int or kind == int | None:
        return st.integers(low, high if high is not None else 2**63 - 1)
    if kind is float or kind == float | None:
        bottom = above if above is not None else low
        top = below if below is not None else high
        return st.floats(
            bottom,
            top,
            exclude_min=above is not None,
            exclude_max=below is not None,
            allow_infinity=False,
            allow_nan=False,
        )
    return st.sampled_from(get_args(kind))


def options_of(defence: str) -> list[str]:
    """What a configuration with this defence may say besides the defence."""
    return [name for name in Configuration.of(defence=defence).as_options() if name != "defence"]


CONFIGURATIONS = (
    st.sampled_from(sorted(DEFENCES))
    .flatmap(
        lambda defence: st.fixed_dictionaries(
            {"defence": st.just(defence)}, optional={name: values_of(name) for name in options_of(defence)}
        )
    )
    .map(lambda values: Configuration.of(**values))
)


@given(CONFIGURATIONS)
def test_toml_round_trip(configuration):
    again = Configuration.of(**flat_options(tomllib.loads(configuration.to_toml())))
    assert again == configuration
    assert again.digest == configuration.digest


@given(CONFIGURATIONS, st.data())
def test_the_digest_ignores_threads_and_nothing_else(configuration, data):
    name = data.draw(st.sampled_from(sorted(configuration.as_options())))
    value = data.draw(values_of(name))
    other = configuration.updated(**{name: value})
    if name == "threads" or value == configuration.option(name):
        assert other.digest == configuration.digest
    else:
        assert other.digest != configuration.digest


@given(st.data())
def test_hyphens_and_underscores_mean_the_same(data):
    name = data.draw(st.sampled_from(sorted(field for field in FIELDS if "_" in field)))
    value = data.draw(values_of(name))
    defence = next(each for each in DEFENCES if name in Configuration.of(defence=each).as_options())
    one, other = ({"defence": defence, spelt: value} for spelt in (name, name.replace("_", "-")))
    assert Configuration.of(**one) == Configuration.of(**other)
    try:
        expected = parse(one)
    except ConfigurationError as error:
        with pytest.raises(ConfigurationError, match=re.escape(str(error))):
            parse(other)
    else:
        assert parse(other) == expected


def test_defaults_are_the_papers_where_it_names_one():
    defaults = Configuration()
    assert (defaults.training.batch_size, defaults.model.dimension, defaults.training.negatives) == (64, 128, 256)
    assert (defaults.training.learning_rate, defaults.model.margin, defaults.training.local_epochs) == (1e-3, 10.0, 3)
    assert parse({}) == defaults


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("batchsize", "batch-size"),
        ("batch_sise", "batch-size"),
        ("Rounds", "rounds"),
        ("local-epoch", "local-epochs"),
        ("optimizer", "optimiser"),
        ("round", "rounds"),
    ],
)
def test_an_unknown_key_names_the_nearest(key, nearest):
    with pytest.raises(ConfigurationError, match=f"unknown configuration key '{key}': did you mean {nearest} in "):
        parse({key: 1})


def test_a_key_like_no_other_lists_all():
    known = ", ".join(sorted(name.replace("_", "-") for name in FIELDS))
    with pytest.raises(ConfigurationError, match=f"unknown configuration key 'zzzz': known: {known}$"):
        parse({"zzzz": 1})


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("rounds", 0, "rounds: Input should be greater than or equal to 1, got 0"),
        ("rounds", "many", "rounds: Input should be a valid integer.*, got 'many'"),
        ("dimension", 2.5, "dimension: Input should be a valid integer.*, got 2.5"),
        ("fraction", 1.5, "fraction: Input should be less than or equal to 1, got 1.5"),
        ("fraction", 0, "fraction: Input should be greater than 0, got 0"),
        ("split", "rows", "split: Input should be 'entity', 'relation' or 'triple', got 'rows'"),
        ("optimiser_state", "lost", "optimiser-state: Input should be 'reset' or 'kept', got 'lost'"),
        ("filter-negatives", "perhaps", "filter-negatives: Input should be a valid boolean.*, got 'perhaps'"),
        ("seed", -1, "seed: Input should be greater than or equal to 0, got -1"),
    ],
)
def test_a_bad_value_says_what_was_expected_and_what_came(key, value, expected):
    with pytest.raises(ConfigurationError, match=expected):
        parse({key: value})


def test_all_bad_values_are_told_at_once():
    with pytest.raises(ConfigurationError, match=r"rounds: .*; norm: |norm: .*; rounds: "):
        parse({"rounds": 0, "norm": 3})


@pytest.mark.parametrize("name", ["learning_rate", "margin", "temperature", "regularisation", "largest_row_norm"])
def test_nan_is_refused(name):
    with pytest.raises(ConfigurationError, match=f"{name.replace('_', '-')}: .*, got nan"):
        parse({name: float("nan")})


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Configuration().training.rounds = 3
    with pytest.raises(AttributeError, match="training"):
        Configuration().training = Configuration().training


def test_reading_files(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('[training]\nrounds = 3\nbatch-size = 7\n[provenance]\nfedkge = "0"\n')
    assert parse(read_toml(path)) == Configuration.of(rounds=3, batch_size=7)
    path.write_text("rounds = ")
    with pytest.raises(ConfigurationError, match=r"config.toml: expected TOML, got: "):
        read_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"config.toml:1: expected UTF-8 text"):
        read_toml(path)
    with pytest.raises(ConfigurationError, match=r"nowhere.toml: no such configuration file"):
        read_toml(tmp_path / "nowhere.toml")


def test_an_old_flat_file_gives_an_error_that_shows_the_same_options_in_sections(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text('model = "rotate"\nrounds = 3\nbatch_size = 7\nepsilon = 8\n')
    with pytest.raises(ConfigurationError) as caught:
        read_toml(path)
    before, shown, new = str(caught.value).partition("; write\n\n")
    assert before == f"{path}: expected options in sections, got model, rounds, batch_size, epsilon outside of any"
    assert shown
    assert new == '[model]\nname = "rotate"\n\n[training]\nrounds = 3\nbatch-size = 7\n\n[privacy]\nepsilon = 8'
    path.write_text(new)
    assert read_toml(path) == {"model": "rotate", "rounds": 3, "batch-size": 7, "epsilon": 8}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "[training]\nepsilon = 8",
            r"\[training\] epsilon: expected it in another section; write epsilon in \[privacy\]",
        ),
        ("[model]\nmodel = 'rotate'", r"\[model\] model: expected another key; write name in \[model\]"),
        (
            "[training]\nbatchsize = 8",
            r"unknown key 'batchsize' in \[training\]: did you mean batch-size in \[training\]\?",
        ),
        ("[training]\nepsilom = 8", r"unknown key 'epsilom' in \[training\]: did you mean epsilon in \[privacy\]"),
        ("[trainning]\nrounds = 8", r"unknown section \[trainning\]: did you mean \[training\]\?"),
        ("[epsilon]\nrounds = 8", r"unknown section \[epsilon\]: write epsilon in \[privacy\]"),
        ("[zzzz]\nrounds = 8", r"unknown section \[zzzz\]: known: \[data\], \[model\], \[training\], "),
        (
            "roundz = 8",
            r"unknown configuration key 'roundz': did you mean rounds in \[training\] or record in \[experiment\]\?",
        ),
        ("[training]\nbatch-size = 5\nbatch_size = 6", r"\[training\] batch_size: expected it once, got it twice"),
    ],
)
def test_what_is_wrong_in_a_file_names_the_right_place(content, message, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(content + "\n")
    with pytest.raises(ConfigurationError, match=rf"run.toml: {message}"):
        read_toml(path)


def test_every_option_has_a_section_a_description_and_somebody_who_decides():
    assert {option.section for option in OPTIONS.values()} == set(SECTIONS)
    assert all(option.info.description for option in OPTIONS.values())
    assert sum(len(decided_by(who)) for who in Who) == len(OPTIONS)
    assert marked(Mark.NO_EFFECT) <= marked(Mark.MAY_CHANGE)


def test_a_changed_option_leaves_the_others_as_they_are():
    before = Configuration.of(model="rotate", rounds=5, epsilon=8.0)
    after = before.updated(rounds=7, victim="client-2")
    assert after.as_options() == {**before.as_options(), "rounds": 7, "victim": "client-2"}
    with pytest.raises(ConfigurationError, match="unknown configuration key 'round'"):
        before.updated(round=7)


@pytest.mark.parametrize("decided", [by_server("why not"), by_server_alone("why not")])
def test_no_defence_can_let_a_server_decide_about_privacy(decided: Decided) -> None:
    loose = create_model("Loose", __base__=PrivacySection, exposure=(Annotated[float, decided], 0.0))
    table = OptionTable()
    table.take_kinds({"loose": SimpleNamespace(options=loose)})
    with pytest.raises(TypeError, match=r"exposure in \[privacy\]: expected BY_SITE"):
        table["exposure"]
