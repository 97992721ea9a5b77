"""Hooks of mkdocs: the notebook becomes a page; the links of the reproduction's page lead to pages."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

PAGE = "reproduction/reproduction.html"
NOTEBOOK, NOTEBOOK_PAGE = "tutorial.ipynb", "tutorial-in-python.md"


def on_files(files: Any, config: Any) -> Any:
    """Add the notebook as a page of Markdown."""
    from mkdocs.structure.files import File  # noqa: PLC0415

    content = json.loads(Path(config["docs_dir"], NOTEBOOK).read_text(encoding="utf-8"))
    files.append(File.generated(config, NOTEBOOK_PAGE, content=_notebooks().as_markdown(content)))
    return files


def _notebooks() -> Any:
    """The module beside this one: hooks are no package."""
    spec = spec_from_file_location("notebooks", Path(__file__).with_name("notebook.py"))
    if spec is None or spec.loader is None:
        raise ImportError("notebook.py: expected it beside site.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_post_build(config: Any) -> None:
    """Lead its links to what mkdocs made of that Markdown."""
    page = Path(config["site_dir"]) / PAGE
    if page.exists():
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r'(href="[^"#:]+)\.md(["#])', r"\1.html\2", text), encoding="utf-8")
