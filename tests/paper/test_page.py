"""The page of a reproduction and its Markdown: complete, escaped, self-contained, the same bytes every time."""

from __future__ import annotations

import functools
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paper.document import Reproduction, gather
from paper.drawing import draw_reproduction
from paper.links import Links, links_from
from paper.markdown import markdown_reproduction
from paper.page import (
    gather_reproduction,
    render_reproduction,
    write_reproduction,
)
from paper.panels import Figures
from paper.settings import PARTS
from tests.paper.sample import FULL, QUICK, grid
from tests.report.test_page import Reader

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def half() -> Reproduction:
    """Every second cell of the quick grid."""
    return gather(QUICK, dict(itertools.islice(sorted(grid(QUICK).items()), 0, None, 2)))


@functools.cache
def made(name: str) -> tuple[Reproduction, dict[str, Figures]]:
    """A document and its figures, drawn once."""
    documents = {"whole": lambda: gather(FULL, grid()), "half": half, "empty": lambda: gather(QUICK, {})}
    document = documents[name]()
    return document, draw_reproduction(document)


@functools.cache
def page(name: str) -> str:
    document, figures = made(name)
    return render_reproduction(document, figures=figures)


def test_page_and_figures_are_the_same_bytes() -> None:
    assert render_reproduction(half()) == page("half")


@pytest.mark.parametrize("name", ["whole", "half", "empty"])
def test_headings_captions_scopes_and_ids_are_in_order(name: str) -> None:
    tags = Reader(page(name)).tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    count = {name: sum(tag == name for tag, _ in tags) for name in ("table", "caption")}
    assert count["table"] == count["caption"] > 0
    assert all("scope" in facts for tag, facts in tags if tag == "th")
    ids = [facts["id"] for _, facts in tags if "id" in facts]
    assert len(ids) == len(set(ids))
    here = [facts["href"] for tag, facts in tags if tag == "a" and str(facts["href"]).startswith("#")]
    assert {str(link)[1:] for link in here} <= set(map(str, ids))
    assert set(PARTS) <= set(map(str, ids))


@pytest.mark.parametrize("name", ["whole", "half"])
def test_rows_of_a_table_are_equally_long(name: str) -> None:
    for table in re.findall(r"<table>.*?</table>", page(name), re.DOTALL):
        widths = set()
        for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL):
            cells = re.findall(r"<t[hd]\b([^>]*)>", row)
            widths.add(sum(int(found[1]) if (found := re.search(r'colspan="(\d+)"', cell)) else 1 for cell in cells))
        assert len(widths) == 1, re.search(r"<strong>(.*?)</strong>", table)


def test_the_page_holds_no_script_and_links_only_to_its_own_folder() -> None:
    reader = Reader(page("whole"))
    assert not {"script", "link", "iframe", "img", "object", "form"} & {tag for tag, _ in reader.tags}
    assert [tag for tag, facts in reader.tags for key in facts if key.startswith("on")] == []
    links = {str(facts["href"]) for tag, facts in reader.tags if tag == "a"}
    assert all(re.fullmatch(r"#[\w-]+|cells/[\w.-]+\.json|reproduction\.json|index\.md", link) for link in links)
    assert "default-src 'none'" in page("whole").replace("&#39;", "'")


def test_pictures_say_in_words_what_they_show() -> None:
    labels = [facts.get("aria-label") for tag, facts in Reader(page("whole")).tags if tag == "svg"]
    assert len(labels) == sum(len(figures.panels) for figures in made("whole")[1].values())
    assert all(label and len(label) > 20 for label in labels)


def test_missing_cells_are_told_and_an_empty_page_stands() -> None:
    assert "not run" in page("half")
    assert "<svg" in page("half")
    assert page("empty").count("There is nothing to show yet") == len(PARTS)
    assert "<svg" not in page("empty")
    assert "not run yet" in page("empty")
    assert "not run" not in " ".join(Reader(page("whole")).words).replace("not run yet", "")


def test_the_quick_look_decides_nothing() -> None:
    assert 'class="warning"' in page("half")
    assert "decides nothing" in page("half")
    assert 'class="warning"' not in page("whole")


def test_controls_and_the_floor_stand_in_every_part() -> None:
    words = " ".join(Reader(page("whole")).words)
    assert words.count("control every target a member") == len(FULL.part("table-attacks")["data"])
    assert words.count("popularity") > 20
    assert ".667" in words
    assert "†" in words


def test_names_are_shown_and_do_nothing() -> None:
    cells = grid(QUICK)
    name = "<script>alert(1)</script>"
    entries = {key: tuple({**one, "adversary": name} for one in cell.attacks) for key, cell in cells.items()}
    changed = {
        key: replace(cell, command=f"{name} {{{{ 7 * 7 }}}}", version=name, attacks=entries[key])
        for key, cell in cells.items()
    }
    text = render_reproduction(gather(QUICK, changed), figures=made("empty")[1])
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "{{ 7 * 7 }}" in text


def test_everything_is_written_and_every_link_of_the_markdown_leads_somewhere(tmp_path: Path) -> None:
    cells = grid(QUICK)
    for cell in cells.values():
        cell.write(tmp_path)
    paths = write_reproduction(gather_reproduction(QUICK, tmp_path), tmp_path)
    assert {"reproduction.html", "index.md", "reproduction.json"} <= {path.name for path in paths}
    assert all(path.stat().st_size > 100 for path in paths)
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (tmp_path / target).exists(), target
    html = (tmp_path / "reproduction.html").read_text(encoding="utf-8")
    for target in re.findall(r'href="(cells/[^"]+)"', html):
        assert (tmp_path / target).exists(), target


def test_the_documentation_builds_with_the_reproduction_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("reproduction"))
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    folder, cells = tmp_path / "docs" / "reproduction", grid(QUICK)
    for cell in cells.values():
        cell.write(folder)
    write_reproduction(gather(QUICK, cells), folder, Links("docs/reproduction"))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    for page in (folder / "reproduction.html", *(tmp_path / "site" / "reproduction").glob("*.html")):
        for link in re.findall(r'href="([^"#:]+)["#]', page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (page, link)
    assert "fedkge reproduction" in (tmp_path / "site" / "reproduction" / "reproduction.html").read_text(
        encoding="utf-8"
    )


def test_markdown_tables_have_as_many_columns_in_every_row() -> None:
    for document, figures in map(made, ("whole", "half", "empty")):
        text = markdown_reproduction(document, figures)
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
        assert all(text.count(f"## {one.title}\n") == 1 for one in document.texts)


def test_files_of_the_repository_are_linked_from_inside_it_alone(tmp_path: Path) -> None:
    assert links_from(ROOT / "benchmarks" / "results") == Links("benchmarks/results")
    assert links_from(tmp_path) == Links()
    document, figures = made("half")
    inside = render_reproduction(document, Links("benchmarks/results"), figures)
    assert 'href="../../docs/proofs/published.md"' in inside
    assert ".md" not in " ".join(re.findall(r'href="([^"]*)"', page("half"))).replace("index.md", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install Debian's `chromium`")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1280, "light")])
def test_the_page_in_chromium(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    path = tmp_path / "reproduction.html"
    path.write_text(page("half"), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    view = context.new_page()
    told: list[str] = []
    asked: list[str] = []
    view.on("console", lambda message: told.append(message.text))
    view.on("request", lambda request: asked.append(request.url))
    view.goto(path.as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.run(view).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
    assert told == []
    assert asked == [path.as_uri()]
    context.close()
