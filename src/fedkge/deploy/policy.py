"""What a server may set, as a list; a site refuses the rest.

Guarantees: the configuration that `accept` returns takes every option that privacy rests on from the site's own file
and none from the server's proposal; no number in it goes beyond the site's limits; only entity rows are shared.
An option that is on no list cannot exist: a test demands that every option of `Configuration` is on exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedkge.base.errors import ConfigurationError, PolicyError, PrivacyError
from fedkge.base.registry import near
from fedkge.configuration import Configuration, kebab, parse
from fedkge.defences.defence import Defence
from fedkge.deploy.site_settings import SITE_DECIDES, Limits, SiteSettings
from fedkge.federation.checks import check_training

SERVER_MAY_SET: Mapping[str, str] = {
    "model": "all sites must train the same one",
    "dimension": "rows of different length cannot be averaged; within the site's limit",
    "margin": "shape of the loss; gradients are clipped, or a copy's, whatever they are",
    "norm": "shape of the loss",
    "rounds": "within the site's limit; the budget does not grow with it",
    "local_epochs": "within the site's limit; noise is calibrated to the steps that follow, a copy is paid already",
    "local_steps": "within the site's limit; noise is calibrated to them, a copy is paid already",
    "batch_size": "within the site's limit; noise is calibrated to the sampling that follows, a copy is paid already",
    "negatives": "within the site's limit; inside the clip, from public lists, or a copy's",
    "negative_group": "how negatives are shared; no part of a private step",
    "corrupt": "which side negatives replace",
    "temperature": "how negatives are weighed",
    "optimiser": "works on what was noised already",
    "optimiser_state": "is made of what was noised already",
    "learning_rate": "multiplies what was noised already",
    "learning_rate_decay": "multiplies what was noised already",
}
"""What a proposal may hold, and why it is harmless to the promise of a defended site."""

SERVER_ALONE: Mapping[str, str] = {
    "aggregation": "how the server averages",
    "fraction": "whom the server asks in a round",
    "minimum_clients": "when the server stops",
    "largest_row_norm": "what the server accepts",
}
"""Matters of the server; a site is neither asked nor told."""

NOBODY: Mapping[str, str] = {
    "strategy": "a site shares entity rows (fede) and nothing else",
    "data": "the site names its own graph",
    "columns": "the site names its own graph",
    "skip_header": "the site names its own graph",
    "clients": "the sites are those with a start-up kit",
    "split": "every site has its own graph",
    "overlap": "every site has its own graph",
    "names": "the site says where its names come from (entities in site.toml)",
    "seed": "the site draws its own, or names it in site.toml",
    "record": "each side keeps what it sees, as its own file says",
    "threads": "the site says how many cores to use",
    "filter_negatives": "tells which triples are private",
    "regularisation": "is the defence's: without a copy it would be computed from private triples outside the clip",
    "patience": "stops by private validation triples",
    "validation_triples": "a site ranks its own triples as it likes",
    "keep_leaked": "a site ranks its own triples as it likes",
    "init": "start vectors may carry private triples past the noise",
    "public_init": "start vectors may carry private triples past the noise",
    "canaries": "the site's data is the site's",
    "canary_coins": "the site's data is the site's",
    "canary_source": "the site's data is the site's",
    "victim": "an experiment in one process",
    "adversary": "an experiment in one process",
    "inline_attack": "an experiment in one process",
}
"""What has no place in a proposal, or in a federation between machines, and why."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Who decides about an option, and why."""

    option: str
    who: str
    why: str


def rulings() -> tuple[Ruling, ...]:
    """Every option of a training run, in the order of `Configuration`, with who decides about it.

    >>> [ruling.who for ruling in rulings() if ruling.option in ("rounds", "epsilon")]
    ['the server, within limits', 'the site']
    """
    limited = set(Limits.model_fields)
    made = []
    for name in Configuration.model_fields:
        if name in SERVER_MAY_SET:
            made.append(Ruling(name, f"the server{', within limits' if name in limited else ''}", SERVER_MAY_SET[name]))
        elif name in SITE_DECIDES:
            made.append(Ruling(name, "the site", "[privacy] in site.toml"))
        elif name in SERVER_ALONE:
            made.append(Ruling(name, "the server, for itself", SERVER_ALONE[name]))
        else:
            made.append(Ruling(name, "not set", NOBODY[name]))
    return tuple(made)


def proposal(configuration: Configuration) -> dict[str, Any]:
    """What a server proposes to the sites: the options that it may set, and no other.

    >>> "epsilon" in proposal(Configuration(epsilon=8.0)), proposal(Configuration(rounds=7))["rounds"]
    (False, 7)
    """
    return {kebab(name): getattr(configuration, name) for name in SERVER_MAY_SET}


def accept(terms: Mapping[str, Any], site: SiteSettings) -> Configuration:
    """The configuration of this site under a server's terms, or a PolicyError that says what the site allows.

    A PolicyError may be told to the server: it holds nothing but the terms and the site's limits. What is wrong with
    the site's own options is another error, for the site.

    >>> own = {"entities": "names.txt", "privacy": {"epsilon": 4}, "limits": {"rounds": 20}}
    >>> site = SiteSettings(name="north", federation="study", graph="g.tsv", **own)
    >>> accept({"rounds": 10}, site).epsilon
    4.0
    >>> accept({"rounds": 21}, site)
    Traceback (most recent call last):
    ...
    fedkge.base.errors.PolicyError: north: the server asks for rounds = 21, this site allows at most 20 (limits in \
site.toml)
    """
    asked = {}
    for key, value in terms.items():
        asked[_allowed_key(key, value, site)] = value
    try:
        check_training(parse(asked))  # alone, so that what is wrong is the server's, and the message may go back to it
    except (ConfigurationError, PrivacyError) as error:
        raise PolicyError(f"{site.name}: the server's terms make no sense: {error}") from error
    graph = {"data": site.graph, "columns": site.columns, "skip-header": site.skip_header}
    own = {**graph, "strategy": "fede", "record": site.record, "seed": site.seed, "threads": site.threads}
    own |= {"names": site.names_are}
    configuration = parse({**asked, **site.privacy, **own})
    _check_limits(configuration, site)
    check_training(configuration)
    if configuration.copy_share and site.limits.least_noise:
        raise ConfigurationError(
            f"{site.name}: least-noise in site.toml is for noisy steps, and the defence {configuration.defence} takes "
            'none: leave it out, or say defence = "noisy-steps"'
        )
    return configuration


def _allowed_key(key: str, value: object, site: SiteSettings) -> str:
    name = kebab(key).replace("-", "_") if isinstance(key, str) else ""
    if name in SERVER_MAY_SET:
        return kebab(name)
    asks = f"{site.name}: the server asks for {key!s:.40} = {value!s:.40}, "
    if name in SITE_DECIDES:
        raise PolicyError(f"{asks}which this site decides itself ([privacy] in site.toml)")
    if name in SERVER_ALONE:
        raise PolicyError(f"{asks}which is no matter of a site ({SERVER_ALONE[name]})")
    if name in NOBODY:
        raise PolicyError(f"{asks}which no server may set: {NOBODY[name]}")
    close = near(kebab(key), map(kebab, SERVER_MAY_SET)) if isinstance(key, str) else []
    hint = f"; nearest: {close[0]}" if close else ""
    raise PolicyError(f"{asks}which is no option that this site knows{hint}; do both ends run the same version?")


def _check_limits(configuration: Configuration, site: SiteSettings) -> None:
    """On the completed configuration, so that what a defence or a default sets is limited too."""
    for name in SERVER_MAY_SET:
        most, asked = getattr(site.limits, name, None), getattr(configuration, name)
        if most is not None and asked > most:
            raise PolicyError(
                f"{site.name}: the server asks for {kebab(name)} = {asked:g}, this site allows at most {most:g} "
                "(limits in site.toml)"
            )


def check_noise(defence: Defence | None, site: SiteSettings) -> None:
    """Refuse a plan with less noise than the site wants, also where its budget would allow it.

    Fewer rounds under the same budget need less noise in each, so a server could lower it that way.
    """
    if defence is None or defence.copy:  # `accept` lets no site demand noise of a copy
        return
    least = min(defence.least_noise(number) for number in range(1, defence.options.rounds + 1))
    if least < site.limits.least_noise:
        raise PolicyError(
            f"{site.name}: {defence.options.rounds} rounds under this site's budget have a noise multiplier of "
            f"{least:.3g}, this site wants at least {site.limits.least_noise:g} (limits in site.toml)"
        )
