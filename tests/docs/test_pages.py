"""What a person reads: plain English, and names of modules and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "benchmarks/README.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "reproduction" not in page.parts),
]
SHORT = [page for page in PAGES if page.parent.name in {"how-to", ROOT.name} and page.name != "CHANGELOG.md"]
QUOTE_THEM = {"glossary.md", "CONTRIBUTING.md"}
LONGEST_SENTENCE_WORDS = 40

# Each was in our texts, and each made a sentence that had to be read twice.
FORBIDDEN = {
    r"\b[Ww]hoever\b": "name the person: 'an adversary who ...'",
    r"(?:^|[.;:] )Who (?:must|insists|wants|hands|can)\b": "name the person: 'If you want to ...'",
    r"(?:^|[.;:] )(?:Promised|Covered|Not covered|Required) (?:is|are)\b": "subject first: 'The promise covers ...'",
    r"\bof which (?:some|many|most) are\b": "make it a sentence of its own",
    r"\b(?:is|are|was|were) told\b": "say who says what: 'the server learns ...'",
    r"\bnext to nothing\b": "'almost nothing', or the number",
    r"\ball the same\b": "'still', or leave it out",
    r"\bsay goodbye\b|\bsays goodbye\b": "'leaves the federation'",
}
NAMED_FILE = re.compile(r"`([\w/.-]+\.py)(?:::(\w+))?`")
NAMED_TEST = re.compile(r"`(test_\w+)`")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sentences(text: str) -> list[str]:
    """The sentences of a page: without code blocks, headings and tables; a link is its text.

    >>> sentences("# Title\\n\\nOne [two](three.md). Four `five six`.\\n\\n| a | b |\\n")
    ['One two.', 'Four code.']
    """
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        if block.lstrip().startswith(("#", "|", "![", "<!--")):
            continue
        plain = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split())))
        found += re.split(r"(?<=[.!?:;])[\"*)]*\s+", plain)
    return [sentence for sentence in found if sentence]


def exists(path: str) -> bool:
    """Whether the repository, or the package, has this file; a bare name may be anywhere in sources and tests."""
    if (ROOT / path).exists() or (ROOT / "src" / "fedkge" / path).exists():
        return True
    return "/" not in path and any(list((ROOT / folder).rglob(path)) for folder in ("src", "tests"))


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in QUOTE_THEM], ids=name)
def test_a_page_avoids_constructions_that_must_be_read_twice(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert {match[0]: advice for pattern, advice in FORBIDDEN.items() if (match := re.search(pattern, text))} == {}


@pytest.mark.parametrize("page", SHORT, ids=name)
def test_sentences_are_short(page: Path) -> None:
    long = [text for text in sentences(page.read_text(encoding="utf-8")) if len(text.split()) > LONGEST_SENTENCE_WORDS]
    assert long == [], "make two sentences of each"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_and_tests_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = {path for path, _ in NAMED_FILE.findall(text) if "NAME" not in path}
    assert [path for path in sorted(files) if not exists(path)] == [], "name the file where it is now"
    named = {test for _, test in NAMED_FILE.findall(text) if test} | set(NAMED_TEST.findall(text))
    if named:
        tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
        assert [test for test in sorted(named) if f"def {test}(" not in tests] == []
