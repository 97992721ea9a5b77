"""The page: escaped, self-contained, small, the same bytes every time, and no number that is not in report.json."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fedkge.base.errors import UnavailableError
from fedkge.report import Document, gather, render
from fedkge.report.comparison import compare
from fedkge.report.figures import draw
from fedkge.report.page import FILTERS, pdf_writer, render_comparison
from fedkge.report.plane import draw_plane
from tests.report.pages import page_of

NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?!\w)")


class Reader(HTMLParser):
    """The text that a reader sees, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.hidden = 0
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("style", "svg", "title")
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "svg", "title")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)


def numbers_of(value: Any) -> set[str]:
    """Every number of a JSON value in every form in which the page writes numbers, and all that stand in its texts."""
    if isinstance(value, dict):
        return set().union(*map(numbers_of, value.values()), *map(numbers_of, value))
    if isinstance(value, list):
        return set().union(*map(numbers_of, value))
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, str):
        return set(NUMBER.findall(value.replace("_", " ")))
    forms = {str(value)} | {
        FILTERS[name](value) for name in ("share", "signed", "percent", "epsilon", "at_least", "small")
    }
    forms |= {FILTERS["count"](value)} if isinstance(value, int) else set()
    return set().union(*(NUMBER.findall(form) for form in forms))


@pytest.mark.parametrize("name", ["run", "bare", "overclaimed", "defended"])
def test_every_number_on_the_page_is_in_the_json(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    for copy in ("for-owner", "shareable"):
        known = numbers_of(json.loads(gather(folder, copy).to_json()))  # type: ignore[arg-type]
        shown = set(NUMBER.findall(" ".join(Reader(page_of(folder, copy)).words)))
        assert len(shown) > 10 or copy == "shareable"
        assert shown - known == set()


def test_the_figures_alternatives_are_in_the_json(run: Path) -> None:
    document = gather(run, "for-owner")
    tags = Reader(page_of(run, "for-owner")).tags
    labels = [facts.get("aria-label") for tag, facts in tags if tag == "svg"]
    assert sorted(map(str, labels)) == sorted(text.alt for text in document.figures)
    assert len(labels) == 5


def test_page_and_figures_are_the_same_bytes(overclaimed: Path) -> None:
    figures = draw(gather(overclaimed, "for-owner"))
    assert figures == draw(gather(overclaimed, "for-owner"))
    assert set(figures) == {"roc-B", "roc-C", "auc-B", "auc-C", "epsilon", "utility"}
    assert render(gather(overclaimed, "for-owner")) == page_of(overclaimed, "for-owner")


@pytest.mark.parametrize("copy", ["shareable", "for-owner"])
def test_a_report_of_100_rounds_and_five_attacks_is_small(run: Path, copy: Any) -> None:
    document = gather(run, copy)
    assert document.run.rounds == 100
    assert len({row.attack for row in document.attacks.rows}) == (5 if copy == "for-owner" else 0)
    assert len(page_of(run, copy).encode()) < 500_000
    assert len(document.to_json().encode()) < 500_000


def test_the_page_holds_no_script_and_fetches_nothing(run: Path) -> None:
    page = page_of(run, "for-owner")
    reader = Reader(page)
    assert not {"script", "link", "iframe", "img", "object", "form", "a", "b"} & {
        tag for tag, facts in reader.tags if tag != "b" or "style" not in facts
    }
    assert [tag for tag, facts in reader.tags for key in facts if key.startswith("on")] == []
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page.replace("&#39;", "'")
    assert "url(http" not in page
    assert "@import" not in page


def test_names_are_shown_and_do_nothing(run: Path) -> None:
    page = page_of(run, "for-owner")
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "{{ 7 * 7 }}" in page
    assert "\u202e" not in page
    assert "two\\nlines" in page


@pytest.mark.parametrize(("name", "copy"), [("run", "for-owner"), ("overclaimed", "shareable")])
def test_headings_captions_and_scopes_are_in_order(name: str, copy: str, request: pytest.FixtureRequest) -> None:
    tags = Reader(page_of(request.getfixturevalue(name), copy)).tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    count = {name: sum(tag == name for tag, _ in tags) for name in ("table", "caption")}
    assert count["table"] == count["caption"] > 0
    assert all("scope" in facts for tag, facts in tags if tag == "th")
    assert next(facts["lang"] for tag, facts in tags if tag == "html") == "en"


def test_a_research_seed_is_loud(overclaimed: Path, defended: Path) -> None:
    assert 'class="warning">RESEARCH SEED' in page_of(defended, "for-owner")
    document = gather(overclaimed, "for-owner")
    assert 'class="warning">The coins of the canaries come from a research seed' in render(document)


def test_the_plane_and_the_comparison(run: Path, overclaimed: Path, bare: Path) -> None:
    comparison = compare([run, overclaimed, bare])
    assert draw_plane(comparison) == draw_plane(comparison)
    assert [one.number for one in comparison.runs] == [1, 2, 3]
    first, second, third = comparison.runs
    assert first.epsilon is None
    assert second.epsilon is not None
    assert second.bound == first.bound
    assert third.auc is None
    known = numbers_of(json.loads(comparison.to_json())) | {str(len(comparison.runs))}
    page = render_comparison(comparison)
    assert set(NUMBER.findall(" ".join(Reader(page).words))) - {f"{one.number}." for one in comparison.runs} <= known
    assert render_comparison(comparison) == page


def test_without_weasyprint_a_pdf_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415

    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(UnavailableError, match="print it to a file"):
        pdf_writer()


def test_a_run_named_like_a_tag_is_escaped(bare: Path) -> None:
    document: Document = gather(bare, "for-owner")
    facts = type(document.run)(**{**document.as_dict()["run"], "name": "</title><script>x</script>"})
    changed = Document(**{**{name: getattr(document, name) for name in document.__slots__}, "run": facts})
    assert "<script" not in render(changed)
