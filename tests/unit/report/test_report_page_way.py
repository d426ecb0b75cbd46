"""How the best kernel came about, on the page."""

from __future__ import annotations

from pathlib import Path

from support.html_page import Page
from support.run_folder import RunFolder, correct, run_config
from support.search_runs import BLOCKS, search_run

from hkbench.report.build import detail
from hkbench.report.model import Place
from hkbench.report.page import render_page
from hkbench.report.page.way import way
from hkbench.store.reader import read_run


def test_each_step_has_what_it_brought(tmp_path: Path) -> None:
    [problem] = detail(read_run(search_run(tmp_path).paths)).problems
    steps = way(problem)
    assert [step.place for step in steps] == [Place(attempt=number, sample=1) for number in (1, 2, 5)]
    assert [step.step for step in steps][:2] == ["start", BLOCKS]
    assert [step.gain for step in steps] == [None, "2.00x over 1.1", "2.00x over 2.1"]
    assert steps[-1].speedup.startswith("4.00x [")


def test_the_page_shows_the_way_in_the_tree(tmp_path: Path) -> None:
    run = search_run(tmp_path)
    page = Page(render_page(detail(read_run(run.paths)), run.paths))
    strips = [attributes["class"] for attributes in page.all("p") if "strip" in attributes.get("class", "")]
    assert strips == ["strip led", "strip led", "strip", "strip", "strip led"]
    assert "How the best kernel came about" in page.text
    assert f"├─ 2 {BLOCKS}".replace("├", "└") in page.text, "steps have their names in the tree"
    targets = [attributes["href"] for attributes in page.all("a")]
    assert targets.count("#p1-5-1") >= 2


def test_a_best_that_was_made_from_nothing_has_no_way(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU",)))
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    [problem] = detail(read_run(run.paths)).problems
    assert way(problem) == ()
