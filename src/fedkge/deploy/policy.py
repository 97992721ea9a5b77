"""What a server may set, as a list; a site refuses the rest.

Guarantees: the configuration that `accept` returns takes every option that privacy rests on from the site's own file
and none from the server's proposal; no number in it goes beyond the site's limits; only entity rows are shared.
An option says itself who decides about it (`fedkge.configuration`); one that does not cannot be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedkge.base.errors import ConfigurationError, PolicyError, PrivacyError
from fedkge.base.registry import near
from fedkge.configuration import Configuration, Who, decided_by, kebab
from fedkge.defences import OPTIONS, chosen_defence, parse
from fedkge.defences.defence import ClientDefence
from fedkge.deploy.site_settings import SITE_DECIDES, Limits, SiteSettings
from fedkge.federation.checks import check_training

SERVER_MAY_SET = decided_by(Who.SERVER)
"""What a proposal may hold, and why it is harmless to the promise of a defended site."""
SERVER_ALONE = decided_by(Who.SERVER_ALONE)
"""Matters of the server; a site is neither asked nor told."""
NOBODY = decided_by(Who.NOBODY)
"""What has no place in a proposal, or in a federation between machines, and why."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Who decides about an option, and why."""

    option: str
    who: str
    why: str


def rulings() -> tuple[Ruling, ...]:
    """Every option of a training run, in the order of the sections, with who decides about it.

    >>> [ruling.who for ruling in rulings() if ruling.option in ("rounds", "epsilon")]
    ['the server, within limits', 'the site']
    """
    limits = {name: ", within limits" for name in Limits.model_fields if name in SERVER_MAY_SET}
    return tuple(
        Ruling(name, option.decided.who.value + limits.get(name, ""), option.decided.why)
        for name, option in OPTIONS.items()
    )


def proposal(configuration: Configuration) -> dict[str, Any]:
    """What a server proposes to the sites: the options that it may set, and no other.

    >>> "epsilon" in proposal(Configuration.of(epsilon=8.0)), proposal(Configuration.of(rounds=7))["rounds"]
    (False, 7)
    """
    return {kebab(name): configuration.option(name) for name in SERVER_MAY_SET}


def accept(terms: Mapping[str, Any], site: SiteSettings) -> Configuration:
    """The configuration of this site under a server's terms, or a PolicyError that says what the site allows.

    A PolicyError may be told to the server: it holds nothing but the terms and the site's limits. What is wrong with
    the site's own options is another error, for the site.

    >>> own = {"entities": "names.txt", "privacy": {"epsilon": 4}, "limits": {"rounds": 20}}
    >>> site = SiteSettings(name="north", federation="study", graph="g.tsv", **own)
    >>> accept({"rounds": 10}, site).privacy.epsilon
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
    defence = chosen_defence(configuration)
    if site.limits.least_noise and defence.keeps_ledger and not defence.has_noise_multiplier:
        raise ConfigurationError(
            f"{site.name}: least-noise in site.toml is for noisy steps, and the defence "
            f"{configuration.privacy.defence} takes "
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
        most, asked = getattr(site.limits, name, None), configuration.option(name)
        if most is not None and asked > most:
            raise PolicyError(
                f"{site.name}: the server asks for {kebab(name)} = {asked:g}, this site allows at most {most:g} "
                "(limits in site.toml)"
            )


def check_noise(defence: ClientDefence, site: SiteSettings) -> None:
    """Refuse a plan with less noise than the site wants, also where its budget would allow it.

    Fewer rounds under the same budget need less noise in each, so a server could lower it that way.
    """
    least = defence.least_multiplier()
    if least is not None and least < site.limits.least_noise:
        raise PolicyError(
            f"{site.name}: {defence.options.training.rounds} rounds under this site's budget have a noise multiplier "
            f"of "
            f"{least:.3g}, this site wants at least {site.limits.least_noise:g} (limits in site.toml)"
        )
