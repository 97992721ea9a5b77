"""The list of options that a server may set; a site refuses all others.

Guarantees: `accept` takes every option that privacy depends on from the site's own file, and none from the server's
proposal. No number in the configuration exceeds the site's limits. Only entity rows are shared.
Each option declares who decides about it (`fedkge.configuration`); importing an option without this fails.
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
"""Options that a proposal may contain, and why each does not change the promise of a defended site."""
SERVER_ALONE = decided_by(Who.SERVER_ALONE)
"""Options that concern the server only; sites never see them."""
NOBODY = decided_by(Who.NOBODY)
"""Options that a proposal, or a federation between machines, must not contain, and why."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """An option, the party that decides about it, and the reason."""

    option: str
    who: str
    why: str


def rulings() -> tuple[Ruling, ...]:
    """Every option of a training run, in the order of the sections, with the party that decides about it.

    >>> [ruling.who for ruling in rulings() if ruling.option in ("rounds", "epsilon")]
    ['the server, within limits', 'the site']
    """
    limits = {name: ", within limits" for name in Limits.model_fields if name in SERVER_MAY_SET}
    return tuple(
        Ruling(name, option.decided.who.value + limits.get(name, ""), option.decided.why)
        for name, option in OPTIONS.items()
    )


def proposal(configuration: Configuration) -> dict[str, Any]:
    """The server's proposal to the sites: the options that it may set, and no others.

    >>> "epsilon" in proposal(Configuration.of(epsilon=8.0)), proposal(Configuration.of(rounds=7))["rounds"]
    (False, 7)
    """
    return {kebab(name): configuration.option(name) for name in SERVER_MAY_SET}


def accept(terms: Mapping[str, Any], site: SiteSettings) -> Configuration:
    """The configuration of this site under a server's terms, or a PolicyError that says what the site allows.

    The server may read a PolicyError: it contains only the terms and the site's limits. An error in the site's own
    options is of another class, and only the site reads it.

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
        check_training(parse(asked))  # the terms alone: any error is the server's, so the server may read the message
    except (ConfigurationError, PrivacyError) as error:
        raise PolicyError(f"{site.name}: the server's terms are invalid: {error}") from error
    graph = {"data": site.graph, "columns": site.columns, "skip-header": site.skip_header}
    own = {**graph, "strategy": "fede", "record": site.record, "seed": site.seed, "threads": site.threads}
    own |= {"names": site.names_are}
    configuration = parse({**asked, **site.privacy, **own})
    _check_limits(configuration, site)
    check_training(configuration)
    defence = chosen_defence(configuration)
    if site.limits.least_noise and defence.keeps_ledger and not defence.has_noise_multiplier:
        raise ConfigurationError(
            f"{site.name}: least-noise in site.toml applies to noisy steps only, got the defence "
            f"{configuration.privacy.defence}; "
            'remove least-noise, or set defence = "noisy-steps"'
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
        raise PolicyError(f"{asks}which concerns the server only ({SERVER_ALONE[name]})")
    if name in NOBODY:
        raise PolicyError(f"{asks}which no server may set: {NOBODY[name]}")
    close = near(kebab(key), map(kebab, SERVER_MAY_SET)) if isinstance(key, str) else []
    hint = f"; nearest: {close[0]}" if close else ""
    raise PolicyError(f"{asks}which this site does not know{hint}; do both ends run the same version?")


def _check_limits(configuration: Configuration, site: SiteSettings) -> None:
    """Check the completed configuration, so that the limits also apply to values from a defence or a default."""
    for name in SERVER_MAY_SET:
        most, asked = getattr(site.limits, name, None), configuration.option(name)
        if most is not None and asked > most:
            raise PolicyError(
                f"{site.name}: the server asks for {kebab(name)} = {asked:g}, this site allows at most {most:g} "
                "(limits in site.toml)"
            )


def check_noise(defence: ClientDefence, site: SiteSettings) -> None:
    """Refuse a plan with less noise than the site wants, even if its budget allows the plan.

    Fewer rounds under the same budget need less noise per round. A server could lower the noise in this way.
    """
    least = defence.least_multiplier()
    if least is not None and least < site.limits.least_noise:
        raise PolicyError(
            f"{site.name}: {defence.options.training.rounds} rounds under this site's budget have a noise multiplier "
            f"of {least:.3g}, this site wants at least {site.limits.least_noise:g} (limits in site.toml)"
        )
