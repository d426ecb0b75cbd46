"""The pages for readers: their links lead somewhere, they keep their bounds, what is generated is current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import corpus
from support.doors import ROOT

from scripts.docs import pages

PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
MAX_README_LINES = 100
MAX_COLUMNS = 100
MAX_WORDS_OF_GLOSSARY = 15


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{link}: there is no {target.relative_to(ROOT)}"
        if anchor:
            assert anchor in anchors(target), f"{link}: {path or page.name} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_wrapped(page: Path) -> None:
    lines = [line for line in prose(page).splitlines() if not line.lstrip().startswith(("|", "<"))]
    assert [line for line in lines if len(line) > MAX_COLUMNS and " " in line.strip(" -*")] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MAX_README_LINES


def test_the_glossary_is_short() -> None:
    rows = re.findall(r"^\| (?!word |---)", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE)
    assert 0 < len(rows) <= MAX_WORDS_OF_GLOSSARY


def test_what_is_generated_is_current() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in pages().items() if path.read_text("utf-8") != text]
    assert stale == [], "run: .venv/bin/python scripts/docs.py"


def test_the_corpus_page_lists_every_case() -> None:
    listed = re.findall(
        r"^\| (\w+) \| (.*?) \| \w+ \| [^|]* \| [\d.]+ \|",
        (ROOT / "docs" / "corpus.md").read_text("utf-8"),
        re.MULTILINE,
    )
    cases = [case for case in corpus.load_cases(only="") if case.runs_on("cpu")]
    expected = [(case.path.stem, case.title.split(": ", 1)[-1].replace("|", "\\|")) for case in cases]
    assert sorted(listed) == sorted(expected), "run: scripts/corpus.py --device cpu --markdown FILE"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_are_named_exist(page: Path) -> None:
    package = ROOT / "hkbench"
    named = re.findall(r"`(([a-z_]+)/(?:[a-z_]+/)*[a-z_]+\.py)`", prose(page))
    assert [path for path, room in named if (package / room).is_dir() and not (package / path).exists()] == []
