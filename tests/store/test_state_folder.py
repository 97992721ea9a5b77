"""Where what belongs to the user is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedkge.base.errors import ConfigurationError
from fedkge.store import state_folder as room
from fedkge.store.state_folder import VARIABLE, state_folder


def test_a_user_without_a_home_is_told_which_variable_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container that runs under a number that no password file knows."""

    def homeless(*_: object, **__: object) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(room, "user_state_path", homeless)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ConfigurationError, match="FEDKGE_STATE: expected a lasting folder"):
        state_folder()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert state_folder() == tmp_path
