"""The [privacy] section of a configuration as the type that its defence declares."""

from __future__ import annotations

from typing import TypeVar

from fedkge.base.errors import ConfigurationError
from fedkge.configuration import Configuration, PrivacySection

Own = TypeVar("Own", bound=PrivacySection)


def own_options(options: Configuration, kind: type[Own]) -> Own:
    """The options of a defence in this configuration; an error if another defence is chosen.

    >>> own_options(Configuration(), PrivacySection).defence
    'none'
    """
    if isinstance(options.privacy, kind):
        return options.privacy
    raise ConfigurationError(f"expected {kind.__name__}, got the options of the defence {options.privacy.defence!r}")
