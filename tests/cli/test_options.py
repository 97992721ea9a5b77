"""Options exist once: in Configuration. Command line and documentation follow it."""

import inspect
from pathlib import Path

from fedkge.cli.options import choices_of, default_of, flag_of, limits_of
from fedkge.cli.train import train
from fedkge.configuration import Configuration

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"
HEADER = ["", "| key | default | values | meaning |", "|---|---|---|---|"]
FIELDS = Configuration.model_fields


def table_row(field: str) -> str:
    """The line of the page for a field; `python -m tests.cli.test_options` writes them all."""
    info = FIELDS[field]
    values = ", ".join(choices_of(info)) or limits_of(info)
    return f"| `{flag_of(field)[2:]}` | {default_of(info)} | {values} | {info.description} |"


def page_with_table(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, *HEADER, *map(table_row, FIELDS), END + after])


def test_every_option_is_documented_as_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_with_table(text), "write the table again with: python -m tests.cli.test_options"


def test_train_has_an_option_for_every_field_and_no_defaults_of_its_own() -> None:
    parameters = inspect.signature(train).parameters
    assert set(FIELDS) <= set(parameters)
    assert all(parameters[field].default is None for field in FIELDS)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
