"""Every error that fedkge raises on purpose, with the exit code that the command line gives it.

A message says what was expected, what came, and what to do. `docs/exit-codes.md` explains each code.
"""

from __future__ import annotations


class FedkgeError(Exception):
    """Base of all errors that a user can cause and mend.

    >>> DataError("train.txt:3: expected 3 columns, got 2").exit_code
    3
    """

    exit_code = 1


class DataError(FedkgeError):
    """A graph file or folder does not hold what it should."""

    exit_code = 3


class ConfigurationError(FedkgeError):
    """An option, a configuration key or a name is unknown or impossible."""

    exit_code = 4


class UnavailableError(FedkgeError):
    """Something that must come from elsewhere (a download, an optional package) is not there."""

    exit_code = 5


class RunError(FedkgeError):
    """A run directory is missing, taken, incomplete or damaged."""

    exit_code = 6


class NumericalError(FedkgeError):
    """A score, a loss or an embedding is not finite, or has grown out of all bounds."""

    exit_code = 7


class PrivacyError(FedkgeError):
    """A privacy promise cannot be kept, or a plan would break one; nothing was released."""

    exit_code = 8


class LeakageError(FedkgeError):
    """An audit showed a larger epsilon than `--fail-above` allows."""

    exit_code = 9


class ContradictionError(FedkgeError):
    """An audit showed a larger epsilon than the run claims: the claim is wrong, or the mechanism has a bug."""

    exit_code = 10


class PolicyError(FedkgeError):
    """A site's own policy forbids what a server asks for; the site did nothing of it."""

    exit_code = 11
