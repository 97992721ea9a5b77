"""Options exist once: in the sections. Command line and documentation follow it."""

import inspect
from pathlib import Path

from fedkge.cli.options import choices_of, default_of, flag_of, limits_of
from fedkge.cli.registered import registered_names
from fedkge.cli.train import train
from fedkge.configuration import SECTIONS, Option, kebab
from fedkge.defences import DEFENCES, OPTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"
HEADER = ["| key | default | values | meaning |", "|---|---|---|---|"]


def table_row(option: Option) -> str:
    """The line of the page for an option; `python -m tests.cli.test_options` writes them all."""
    info = option.info
    values = ", ".join(choices_of(info) or registered_names(option.name)) or limits_of(info)
    flag = "" if option.key == option.name else f" (flag `{flag_of(option.name)}`)"
    takers = OPTIONS.kinds_with(option) if option.section == "privacy" else []
    only = f" For {' and '.join(takers)}." if set(takers) < set(DEFENCES) and takers else ""
    return f"| `{kebab(option.key)}`{flag} | {default_of(info)} | {values} | {info.description}{only} |"


def section_lines(name: str) -> list[str]:
    """The part of the page for a section."""
    rows = [table_row(option) for option in OPTIONS.values() if option.section == name]
    about = inspect.getdoc(SECTIONS[name]) or ""
    return ["", f"## [{name}]", " ".join(about.split()), "", *HEADER, *rows]


def page_with_table(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, *(line for name in SECTIONS for line in section_lines(name)), END + after])


def test_every_option_is_documented_as_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_with_table(text), "write the table again with: python -m tests.cli.test_options"


def test_train_has_an_option_for_every_field_and_no_defaults_of_its_own() -> None:
    parameters = inspect.signature(train).parameters
    assert set(OPTIONS) <= set(parameters)
    assert all(parameters[field].default is None for field in OPTIONS)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
