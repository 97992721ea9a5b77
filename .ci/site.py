"""Hook of mkdocs: the page of the reproduction is HTML, and links to Markdown as it stands in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = "reproduction/reproduction.html"


def on_post_build(config: Any) -> None:
    """Lead its links to what mkdocs made of that Markdown."""
    page = Path(config["site_dir"]) / PAGE
    if page.exists():
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r'(href="[^"#:]+)\.md(["#])', r"\1.html\2", text), encoding="utf-8")
