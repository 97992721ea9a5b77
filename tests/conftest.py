"""For all tests: a machine that is busy is no reason to fail."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fedkge", deadline=None)
settings.load_profile("fedkge")
