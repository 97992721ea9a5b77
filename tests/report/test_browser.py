"""The page in a real browser: nothing goes wrong, nothing leaves, everything is seen, everybody can read it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedkge.report.comparison import compare
from fedkge.report.page import render_comparison
from tests.report.pages import page_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install Debian's `chromium`")

SIZES = [(375, "light"), (375, "dark"), (1280, "light"), (1280, "dark")]
AXED = [(375, "dark"), (1280, "light")]
"""Axe looks at both widths and both sets of colours, not at every pair of them: that is what takes time."""
INSIDE = """() => [...document.querySelectorAll('figure svg')].map(svg => {
    const box = svg.getBoundingClientRect();
    return [box.width, box.height, box.left, box.right, document.documentElement.clientWidth];
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(run: Path, overclaimed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "owner": page_of(run, "for-owner"),
        "claimed": page_of(overclaimed),
        "comparison": render_comparison(compare([run, overclaimed])),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("name", ["owner", "claimed", "comparison"])
def test_the_page_in_chromium(browser: Any, pages: dict[str, Path], name: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    address = pages[name].as_uri()
    for width, scheme in SIZES:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        told: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message, told=told: told.append(message.text))
        page.on("pageerror", lambda error, told=told: told.append(str(error)))
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(address)
        assert "owned" not in page.title()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        figures = page.evaluate(INSIDE)
        assert len(figures) >= (5 if name == "owner" else 1)
        for wide, high, left, right, available in figures:
            assert wide > 200
            assert high > 100
            assert left >= 0
            assert right <= available
        assert told == []
        assert asked == [address]
        found = axe.run(page).response["violations"] if (width, scheme) in AXED else []
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], (width, scheme)
        context.close()
