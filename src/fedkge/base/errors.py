"""Every error that fedkge raises on purpose, with the exit code that the command line gives it.

A message says what was expected, what was found, and what to do. `docs/exit-codes.md` explains each code.
"""

from __future__ import annotations


class FedkgeError(Exception):
    """Base class of all errors that a user can cause and fix.

    >>> DataError("train.txt:3: expected 3 columns, got 2").exit_code
    3
    """

    exit_code = 1


class DataError(FedkgeError):
    """A graph file or folder has unexpected content."""

    exit_code = 3


class ConfigurationError(FedkgeError):
    """An option, a configuration key or a name is unknown or impossible."""

    exit_code = 4


class UnavailableError(FedkgeError):
    """A download or an optional package is not available."""

    exit_code = 5


class RunError(FedkgeError):
    """A run directory is missing, taken, incomplete or damaged."""

    exit_code = 6


class NumericalError(FedkgeError):
    """A score, a loss or an embedding is not finite or is too large."""

    exit_code = 7


class PrivacyError(FedkgeError):
    """A privacy promise cannot be kept, or a plan would break one. Nothing was released."""

    exit_code = 8


class LeakageError(FedkgeError):
    """An audit showed a larger epsilon than `--fail-above` allows."""

    exit_code = 9


class ContradictionError(FedkgeError):
    """An audit showed a larger epsilon than the run claims: the claim is wrong, or the mechanism has a bug."""

    exit_code = 10


class PolicyError(FedkgeError):
    """A site's policy forbids what the server asks for. The site did not do it."""

    exit_code = 11
