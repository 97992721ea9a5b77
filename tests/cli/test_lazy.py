"""Commands are imported when they are called; the table that stands for them until then says the same as they do."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedkge.base.errors import UnavailableError
from fedkge.cli.app import Data, Federation, Fedkge, app
from fedkge.cli.lazy import Verb
from fedkge.configuration import OPTIONS, kebab

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"
PROGRAM = "from fedkge.cli import main; main()"
VERBS = {
    **Fedkge.verbs,
    **{f"data {name}": verb for name, verb in Data.verbs.items()},
    **{f"federation {name}": verb for name, verb in Federation.verbs.items()},
}


def completions(words: str, **settings: str) -> set[str]:
    """What bash offers after these words."""
    environment = {
        **os.environ,
        "_FEDKGE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        **settings,
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", VERBS)
def test_the_table_has_the_first_line_of_every_help(name: str) -> None:
    verb = VERBS[name]
    module = import_module(verb.module)
    function = getattr(module, verb.module.rpartition(".")[2])
    assert function.__doc__.splitlines()[0] == verb.help
    assert module.EXAMPLE.startswith((f"Example: fedkge {name}", f"Examples: fedkge {name}"))


@pytest.mark.parametrize("name", VERBS)
def test_every_command_can_print_json(name: str) -> None:
    options = {flag for parameter in VERBS[name].load(name).params for flag in parameter.opts}
    assert "--json" in options


@pytest.mark.parametrize("name", ["attack", "account", "audit", "report", "compare", "reproduce", "evaluate", "export"])
def test_the_page_names_every_option(name: str) -> None:
    """The options of the configuration have a page of their own; --json and --help are named once, at the top."""
    flags = {flag for parameter in VERBS[name].load(name).params for flag in parameter.opts if flag.startswith("--")}
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"--[a-z][a-z-]+", section))
    assert flags - {f"--{kebab(option)}" for option in OPTIONS} <= named | {"--json", "--help"}


def test_shells_complete_commands_of_groups_and_options() -> None:
    assert {"train", "resume", "data"} <= completions("fedkge ")
    assert completions("fedkge data s") == {"show", "split"}
    assert {"--epsilon", "--batch-size"} <= completions("fedkge train --")


def test_an_unknown_command_names_the_nearest() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, "trian"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Did you mean 'train'?" in done.stderr


def test_an_error_during_the_import_of_a_command_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(_verb: Verb, _name: str) -> None:
        raise UnavailableError("expected an extra, got none")

    monkeypatch.setattr(Verb, "load", unavailable)
    result = CliRunner().invoke(app, ["train"])
    assert result.exit_code == UnavailableError.exit_code
    assert result.stderr == "error: expected an extra, got none\n"
