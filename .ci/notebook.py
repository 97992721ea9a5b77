"""The tutorial's notebook: run its cells without Jupyter, keep their outputs, show it as Markdown.

`make notebook` runs `python .ci/notebook.py docs/tutorial.ipynb` and writes the outputs again. A test runs the cells,
and the hook of mkdocs makes a page of them.
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def source_of(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def executed(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of every code cell, run one after the other in one namespace, as Jupyter would keep them."""
    space: dict[str, Any] = {"__name__": "__main__"}
    return [_outputs(source_of(cell), space) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _outputs(source: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one cell: what it printed, and its last expression as text and, where it has one, as HTML."""
    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), space)  # noqa: S102
        value = eval(compile(last, "<cell>", "eval"), space) if last else None  # noqa: S307
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if html := getattr(value, "_repr_html_", None):
            data["text/html"] = [html()]
        found.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return found


def text_of(output: dict[str, Any]) -> str:
    """What an output shows as plain text."""
    return "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])


def as_markdown(notebook: dict[str, Any]) -> str:
    """The notebook as a page: its text, its code and what the code shows."""
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(source_of(cell))
            continue
        parts.append(f"```python\n{source_of(cell)}\n```")
        parts += [f"```text\n{text_of(output)}\n```" for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def main(path: Path) -> None:
    """Run the cells in an empty folder and write their outputs into the notebook."""
    notebook, here = json.loads(path.read_text(encoding="utf-8")), Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        found = executed(notebook)
        os.chdir(here)
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for cell, outputs in zip(cells, found, strict=True):
        cell["outputs"] = outputs
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
