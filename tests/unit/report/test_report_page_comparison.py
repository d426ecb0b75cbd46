"""The page of several runs: what is on it, and that nothing on it reaches out or runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.compared_runs import EVIL, compared_run
from support.html_page import LOADS, Page

from hkbench.records import EvaluationSettings
from hkbench.report.page.svg import RUNS
from hkbench.report.write import write_comparison, write_reports

MODEL = f"model {EVIL}\x1b[31m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    compared_run(root / "a", [2.0, 0.5, None, 3.0, None])
    compared_run(root / "b x", [1.0, 2.0, 0.5, None, None, 2.0], model=MODEL, evaluation=EvaluationSettings(trials=2))
    compared_run(root / "c", [4.0, 0.5, None, 2.0, None])
    for name in ("a", "b x"):
        write_reports(root / name)
    return root


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    _, page = write_comparison([folder / name for name in ("a", "b x", "c")])
    return page.read_text()


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_it_is_one_file_without_a_script(html: str, page: Page) -> None:
    assert page.all("script") == [] and EVIL not in html and "document.title = 'owned'" in page.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes), tag
        for name in LOADS & attributes.keys():
            assert "//" not in attributes[name], (tag, name, attributes[name])
            assert "url(" not in attributes[name].replace("url(#", ""), (tag, attributes[name])
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "script-src" not in policy


def test_runs_bear_the_names_of_their_models(folder: Path, page: Page) -> None:
    found, _ = write_comparison([folder / name for name in ("a", "b x", "c")])
    for one in found.against:
        assert one.whole.conclusion in page.text
    labels = [run.label for run in found.runs]
    assert labels[::2] == ["test-model (a)", "test-model (c)"] and labels[1].startswith("model <script>")
    assert all(f"{label} against test-model (a)" in page.text for label in labels[1:])
    assert "Each run is compared with test-model (a), the first" in page.text
    assert "The runs were not evaluated alike (evaluation trials: 5 in test-model (a), 2 in model" in page.text
    assert "evaluation trials 5 2 5" in page.text


def test_what_is_to_be_on_it(page: Page) -> None:
    for words in (
        "Over the 5 problems that all runs finished and judged, with the same file.",
        "Solved 2: 40.0 % [11.8, 76.9] 2: 40.0 % [11.8, 76.9] 2: 40.0 % [11.8, 76.9]",
        "pass@1 30.0 %",
        "Output tokens 600 600 600",
        "2_P slower 0.50x [0.45, 0.55] faster 2.00x [1.80, 2.20]",
        "correct by test-model (a) only: 1",
        "against test-model (a) only in B",
        "2 faster, 1 slower, 2 wrong 40.0 % [11.8, 76.9] 60.0 % [23.1, 88.2]",
        "solved 2 of 5 2 of 5 +0.0 points [",
        "1_P faster 2.00x [1.80, 2.20] on a par 1.00x [0.90, 1.10] faster 4.00x [3.60, 4.40] 0.50x* 2.00x*",
    ):
        assert words in page.text, words


def test_each_figure_has_words_and_numbers(page: Page) -> None:
    pictures = [attributes for attributes in page.all("svg") if attributes.get("role") == "img"]
    assert len(pictures) == len(page.all("figure")) == 4
    assert page.text.count("The numbers") == 4
    for words in ("At p = 1: test-model (a) 40.0 %", "faster than PyTorch: test-model (a) 2", "test-model (a) 7 of 10"):
        assert words in page.text, words


def test_runs_have_colours_of_their_own(html: str) -> None:
    style = html[: html.index("</style>")]
    for number in range(1, len(RUNS) + 1):
        assert style.count(f"--run-{number}: #") == 2  # light and dark
    assert all(f"var(--run-{number})" in html[html.index("</style>") :] for number in (1, 2, 3))


def test_links_lead_into_the_runs_own_reports(folder: Path, page: Page) -> None:
    names = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert [name for name, count in names.items() if count > 1] == []
    targets = [a["href"] for a in page.all("a")]
    assert {target[1:] for target in targets if target.startswith("#")} <= set(names)
    outside = [target for target in targets if not target.startswith("#")]
    assert {target.partition("#")[0] for target in outside} == {"report.html", "../b%20x/report.html"}  # C has none
    anchors = {}
    for target in outside:
        address, _, anchor = target.partition("#")
        if address not in anchors:
            other = Page((folder / "a" / unquote(address)).read_text())
            anchors[address] = {attributes.get("id") for _, attributes in other.elements}
        assert not anchor or anchor in anchors[address], target


def test_it_lies_where_it_is_told_and_links_from_there(folder: Path, tmp_path: Path) -> None:
    _, page = write_comparison([folder / "a", folder / "b x"], tmp_path / "two.html")
    assert page == tmp_path / "two.html" and (tmp_path / "two.json").is_file()
    links = [a["href"] for a in Page(page.read_text()).all("a") if "report.html" in a["href"]]
    assert links and all((tmp_path / unquote(link.partition("#")[0])).is_file() for link in links)


def test_nothing_correct_and_nothing_common_have_a_page_too(tmp_path: Path) -> None:
    compared_run(tmp_path / "a", [None, None])
    compared_run(tmp_path / "b", [None, 1.0], hashes=("0" * 64, "1" * 64))
    compared_run(tmp_path / "c", [None, 1.0], hashes=("1" * 64, "0" * 64))
    text = Page(write_comparison([tmp_path / "a", tmp_path / "b"])[1].read_text()).text
    assert "No common problem has a correct kernel." in text and "nothing is said of speed" in text
    text = Page(write_comparison([tmp_path / x for x in "abc"])[1].read_text()).text
    assert "No problem is common to all runs" in text
