"""Which defence options stand for, and what it sets."""

import pytest

from fedkge.base.errors import ConfigurationError, PrivacyError
from fedkge.defences import DEFENCES, check_defence, parse
from fedkge.defences.defence import PublicNumbers
from fedkge.defences.noisy_copy.client import ClientCopy
from fedkge.models import MODELS


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "none"),
        ({"epsilon": 8.0}, "recommended"),
        ({"noise": 3.0}, "noisy-steps"),
        ({"epsilon": 8.0, "noise": 3.0}, "noisy-steps"),
        ({"epsilon": 8.0, "noise": 3.0, "defence": "dpsgd"}, "dpsgd"),
        ({"epsilon": 8.0, "defence": "none"}, "none"),
    ],
)
def test_a_budget_alone_is_a_copy_and_noise_is_of_steps(options, name):
    chosen = parse(options)
    assert chosen.privacy.defence == name
    assert (chosen.as_options().get("copy_share", 0) > 0) == (name == "recommended")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", sorted(set(DEFENCES) - {"none"}))
def test_every_defence_fits_every_model(name, model):
    check_defence(parse({"defence": name, "model": model, "epsilon": 8.0}))


@pytest.mark.parametrize(("given", "other"), [("count-share", "copy-share"), ("copy-share", "count-share")])
def test_of_a_copys_two_shares_one_is_enough(given, other):
    options = parse({"epsilon": 8.0, given: 0.3})
    shares = {"count-share": options.privacy.count_share, "copy-share": options.privacy.copy_share}
    assert shares == {given: 0.3, other: pytest.approx(0.7)}
    check_defence(options)
    with pytest.raises(ConfigurationError, match=f"{given} above 0, got 0: .*use --defence noisy-steps"):
        parse({"epsilon": 8.0, given: 0.0})


@pytest.mark.parametrize(("epsilon", "counts"), [(0.5, 0.95), (4.0, 0.95), (5.0, 0.25), (8.0, 0.25), (16.0, 0.25)])
def test_counts_get_nearly_all_of_a_small_budget_and_a_quarter_of_a_large_one(epsilon, counts):
    options = parse({"epsilon": epsilon})
    assert (options.privacy.count_share, options.privacy.copy_share) == (counts, pytest.approx(1 - counts))
    check_defence(options)


@pytest.mark.parametrize(("epsilon", "share"), [(4.0, 0), (5.0, 0.95), (8.0, 0.95), (9.0, 0), (16.0, 0)])
def test_counts_get_nearly_all_of_a_middling_budget_where_triples_are_few(epsilon, share):
    options = parse({"epsilon": epsilon})
    assert options.privacy.sparse_share == share
    few, many = (ClientCopy(options, PublicNumbers(triples, entities=1000), noise=1.0).copy for triples in (1799, 1800))
    assert few.profile_scale == pytest.approx(2 / (epsilon * (share or options.privacy.count_share)))
    assert many.profile_scale == pytest.approx(2 / (epsilon * options.privacy.count_share))
    assert [plan.epsilon + 2 / plan.profile_scale for plan in (few, many)] == pytest.approx([epsilon, epsilon])


@pytest.mark.parametrize(
    "given",
    [
        {"count-share": 0.3},
        {"count-share": "0.3"},
        {"copy-share": 0.3},
        {"copy-share": "0.3"},
        {"count-share": 0.25, "copy-share": 0.75},
    ],
)
def test_shares_that_are_given_hold_however_few_triples_there_are(given):
    options = parse({"epsilon": "8", **given})
    check_defence(options)
    assert options.privacy.count_share + options.privacy.copy_share == pytest.approx(1)
    assert ClientCopy(options, PublicNumbers(1, 1000), 1.0).copy.profile_scale == 2 / (8 * options.privacy.count_share)


@pytest.mark.parametrize("share", ["copy-share", "count-share", "sparse-share"])
def test_shares_of_no_budget_are_refused(share):
    with pytest.raises(ConfigurationError, match=f"leave {share} out, or choose --defence .*recommended"):
        parse({share: 0.5})


@pytest.mark.parametrize("share", ["copy-share", "sparse-share"])
def test_a_copys_share_without_a_copy_is_refused(share):
    with pytest.raises(ConfigurationError, match=f"leave {share} out, or choose --defence recommended$"):
        parse({"defence": "noisy-steps", "epsilon": 8.0, share: 0.5})


def test_a_copy_without_its_share_is_refused():
    with pytest.raises(PrivacyError, match="set copy-share"):
        check_defence(parse({"epsilon": 8.0}).updated(copy_share=0.0, sparse_share=0.0))


def test_noisy_steps_have_no_share_for_a_copy():
    options = parse({"defence": "noisy-steps", "epsilon": 8.0, "count-share": 0.3})
    with pytest.raises(ConfigurationError, match="the defence noisy-steps does not take copy-share"):
        options.option("copy-share")


def test_a_share_that_is_no_share_is_refused_as_such():
    with pytest.raises(ConfigurationError, match=r"count-share: .* less than 1"):
        parse({"epsilon": 8.0, "count-share": 1.5})
