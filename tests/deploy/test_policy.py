"""What a server may set, and that a site refuses the rest; the page follows the code."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import ConfigurationError, PolicyError, PrivacyError
from fedkge.cli.options import choices_of, default_of, limits_of
from fedkge.configuration import Configuration, kebab
from fedkge.defences import OPTIONS
from fedkge.defences.noisy_steps.client import ClientSteps
from fedkge.defences.planning import client_defence
from fedkge.deploy.policy import NOBODY, SERVER_ALONE, SERVER_MAY_SET, accept, check_noise, proposal, rulings
from fedkge.deploy.site_settings import SITE_DECIDES, Limits, Names, SiteSettings
from fedkge.graph import Graph

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "site-policy.md"
LISTS = (set(SERVER_MAY_SET), set(SITE_DECIDES), set(SERVER_ALONE), set(NOBODY))
PRIVACY: dict[str, Any] = {"defence": "recommended", "epsilon": 4.0, "delta": 1e-6, "count-share": 0.25}
STEPS = {"defence": "noisy-steps", "epsilon": 4.0, "delta": 1e-6, "clip": 0.4, "private-negatives": "inside"}
SITE = SiteSettings(  # type: ignore[arg-type]
    name="north",
    federation="study",
    graph="g.tsv",
    entities="from-triples",
    seed=5,
    privacy=PRIVACY,
    limits={"rounds": 40},
)
STEPPING = SITE.model_copy(update={"privacy": STEPS})

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(), st.text(max_size=8), st.sampled_from(["none", "sgd"])
)
KEYS = st.sampled_from([kebab(name) for name in OPTIONS] + ["epsilom", "code", "clip_"])


def site_values(configuration: Configuration) -> dict[str, Any]:
    """Everything that a promise rests on, as the configuration has it."""
    decided = {*SITE_DECIDES, *NOBODY}
    return {name: value for name, value in configuration.as_options().items() if name in decided}


def test_every_option_is_on_exactly_one_list() -> None:
    assert set().union(*LISTS) == set(OPTIONS)
    assert sum(map(len, LISTS)) == len(OPTIONS)
    assert [ruling.option for ruling in rulings()] == list(OPTIONS)


@pytest.mark.parametrize("site", [SITE, STEPPING], ids=["copy", "steps"])
@given(terms=st.dictionaries(KEYS, VALUES, max_size=4))
def test_no_proposal_changes_what_the_site_decides(site: SiteSettings, terms: dict[str, Any]) -> None:
    try:
        accepted = accept(terms, site)
    except PolicyError:
        return
    assert set(terms) <= {kebab(name) for name in SERVER_MAY_SET}
    own = site_values(accept({}, site))
    model = {kebab(name): terms[kebab(name)] for name in ("model",) if kebab(name) in terms}
    by_model = site_values(
        accept(model, site)
    )  # a defence may clip otherwise for another model: that is the site's word
    assert site_values(accepted) == {**own, **by_model}
    assert {key: accepted.option(key) for key in site.privacy} == site.privacy
    for name in set(Limits.model_fields) & set(SERVER_MAY_SET):
        assert accepted.option(name) <= getattr(site.limits, name)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epsilon", 1000.0),
        ("epsilon", 4.0),
        ("delta", 0.5),
        ("noise", 1e-9),
        ("clip", 1e9),
        ("row_clip", 1e9),
        ("defence", "none"),
        ("private-negatives", "public"),
        ("selection", "ptr-published"),
        ("noise-seed", 1),
        ("noise_seed", 1),
        ("public-triples", 1),
        ("seed", 7),
        ("strategy", "fedr"),
        ("strategy", "pooled"),
        ("init", "vectors.safetensors"),
        ("public-init", True),
        ("filter-negatives", True),
        ("regularisation", 0.1),
        ("patience", 3),
        ("data", "/etc/passwd"),
        ("public-graph", "/etc/passwd"),
        ("canaries", 100),
        ("accountant", "rdp"),
    ],
)
def test_a_server_cannot_touch(key: str, value: object) -> None:
    with pytest.raises(PolicyError, match=rf"^north: the server asks for {key} = {str(value)[:40]}, which "):
        accept({"rounds": 5, key: value}, SITE)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"rounds": 41}, r"rounds = 41, this site allows at most 40 \(limits"),
        ({"dimension": 4096}, "dimension = 4096, this site allows at most 1024"),
        ({"batch-size": 10**6}, "batch-size = 1e.06, this site allows at most 65536"),
        ({"local-steps": 10**6}, "local-steps"),
        ({"local-epochs": 1000}, "local-epochs"),
        ({"negatives": 10**6}, "negatives"),
        ({"roundz": 5}, "which this site does not know; nearest: rounds"),
        ({"learning-rate": float("nan")}, "are invalid: .*learning-rate"),
        ({"rounds": "all"}, "are invalid: .*rounds"),
        ({"model": "../../x"}, "are invalid"),
    ],
)
def test_a_server_is_told_what_the_site_allows(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        accept(terms, SITE)


def test_a_default_beyond_the_limit_is_refused_too() -> None:
    narrow = SITE.model_copy(update={"limits": Limits(rounds=5)})
    with pytest.raises(PolicyError, match="rounds = 30, this site allows at most 5"):
        accept({}, narrow)


def test_what_a_server_may_set_arrives() -> None:
    server = Configuration.of(
        model="rotate", dimension=16, rounds=9, batch_size=512, learning_rate=0.5, optimiser="sgd"
    )
    for site, own in ((SITE, (5, 4.0, None, 0.75)), (STEPPING, (5, 4.0, 0.4, None))):
        accepted = accept(proposal(server), site)
        assert proposal(accepted) == proposal(server)
        assert (
            accepted.experiment.seed,
            accepted.privacy.epsilon,
            accepted.as_options().get("clip"),
            accepted.as_options().get("copy_share"),
        ) == own


def test_a_proposal_holds_nothing_of_the_servers_own() -> None:
    server = Configuration.of(defence="dpsgd", epsilon=9.0, clip=3.0, seed=4, minimum_clients=2, noise_seed=1)
    assert set(proposal(server)) == {kebab(name) for name in SERVER_MAY_SET}


def test_a_site_without_a_defence_stays_so_and_one_with_a_defence_too() -> None:
    plain = SITE.model_copy(update={"privacy": {"defence": "none"}})
    assert accept({"rounds": 3}, plain).privacy.defence == "none"
    assert accept({"rounds": 3}, SITE).privacy.defence == "recommended"


def test_what_is_wrong_with_the_sites_own_options_is_no_matter_of_the_server() -> None:
    confused = SITE.model_copy(update={"privacy": {**STEPS, "selection": "adafest"}})
    with pytest.raises(PrivacyError, match="negatives inside"):
        accept({"rounds": 3}, confused)


@pytest.mark.parametrize("option", [{"clip": 0.4}, {"private-negatives": "public"}, {"noise": 4.0}])
def test_a_site_that_wants_its_steps_noised_in_some_way_is_told_that_a_copy_has_none(option: dict[str, Any]) -> None:
    confused = SITE.model_copy(update={"privacy": {**PRIVACY, **option}})
    with pytest.raises(ConfigurationError, match=f"leave {next(iter(option))} out, or choose --defence .*noisy-steps"):
        accept({"rounds": 3}, confused)


def test_a_site_that_wants_noise_in_every_round_is_told_that_a_copy_has_none() -> None:
    confused = SITE.model_copy(update={"limits": Limits(least_noise=2.0)})
    with pytest.raises(ConfigurationError, match=r'least-noise .* or set defence = "noisy-steps"'):
        accept({"rounds": 3}, confused)
    accept({"rounds": 3}, confused.model_copy(update={"privacy": STEPS}))


def test_a_bilinear_model_is_regularised_by_the_sites_own_defence() -> None:
    assert accept({"model": "distmult"}, SITE).training.regularisation > 0
    assert accept({"model": "distmult"}, STEPPING).training.regularisation == 0


def test_fewer_rounds_cannot_lower_the_noise_below_the_sites_own() -> None:
    graph = Graph.from_names("north", train=[(f"e{i % 30}", "r", f"e{i % 29}") for i in range(200)])
    many, one = (
        client_defence(accept({"rounds": rounds, "batch-size": 64}, STEPPING), "north", graph, Ledger.in_memory())
        for rounds in (20, 1)
    )
    assert isinstance(many, ClientSteps)
    assert isinstance(one, ClientSteps)
    assert one.noise < many.noise
    strict = STEPPING.model_copy(update={"limits": Limits(least_noise=(one.noise + many.noise) / 2)})
    check_noise(many, strict)
    with pytest.raises(
        PolicyError, match=f"^north: 1 rounds .* multiplier of {one.noise:.3g}, this site wants at least"
    ):
        check_noise(one, strict)
    check_noise(client_defence(Configuration(), "north", graph, Ledger.in_memory()), strict)


def sections() -> dict[str, list[str]]:
    """The generated parts of the page."""
    return {
        "rulings": [
            "| option | who decides | why |",
            "|---|---|---|",
            *(f"| `{kebab(ruling.option)}` | {ruling.who} | {ruling.why} |" for ruling in rulings()),
        ],
        "site keys": keys_of(SiteSettings),
        "limits keys": keys_of(Limits),
        "names keys": keys_of(Names),
    }


def keys_of(kind: Any) -> list[str]:
    rows = ["| key | default | values | meaning |", "|---|---|---|---|"]
    for name, info in kind.model_fields.items():
        plain = not info.is_required() and not isinstance(info.default, Limits | Names) and info.default_factory is None
        default = default_of(info) if plain else ("required" if info.is_required() else "")
        values = ", ".join(choices_of(info)) or limits_of(info) if name not in ("name", "federation") else ""
        rows.append(f"| `{kebab(name)}` | {default} | {values} | {info.description} |")
    return rows


def page_with_tables(text: str) -> str:
    for name, lines in sections().items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, found, rest = text.partition(begin)
        assert found, name
        _, found, after = rest.partition(end)
        assert found, name
        text = "\n".join([before + begin, "", *lines, end + after])
    return text


def test_the_page_is_as_the_code_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_with_tables(text), "write the tables again with: python -m tests.deploy.test_policy"


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
