"""report.html in a real browser, opened from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.browser import CHROMIUM, DARK, SAY, asked, look, violations
from support.report_page import page_run

from hkbench.report.write import write_reports
from hkbench.store.layout import RunPaths

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the page is not tried in a browser"),
]

_MEASURE = f"""{SAY}({{
  inner: innerWidth, scroll: document.documentElement.scrollWidth,
  figures: [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().height),
  background: getComputedStyle(document.body).backgroundColor,
  line: getComputedStyle(document.querySelector("#fast-p path[style*='--accent']")).stroke,
  filter: document.getElementById("filters").hidden,
}});"""
_FILTER = """
const box = document.getElementById("filter");
box.value = "%s";
box.dispatchEvent(new Event("input"));
setTimeout(() => document.body.dataset.found = JSON.stringify({
  samples: document.querySelectorAll(".sample:not([hidden])").length,
  cells: document.querySelectorAll(".strip a:not([hidden])").length,
  problems: [...document.querySelectorAll("section.problem:not([hidden])")].map((section) => section.dataset.name),
  rows: document.querySelectorAll("#problems tbody tr:not([hidden])").length,
  said: document.getElementById("filtered").textContent,
  invalid: box.hasAttribute("aria-invalid"),
}), 1000);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    page_run(folder)
    write_reports(folder)
    return RunPaths(folder).report_page


def test_the_console_is_silent_and_models_text_does_nothing(page: Path) -> None:
    document, console = look(page)
    assert console == []
    assert "<title>test-model · C++ on CPU · L1, 4 problems · 2x2 · track own</title>" in document
    assert 'id="filters" class="filter">' in document  # the page's own script has run: its hash is right


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_and_all_figures_are_there(page: Path, width: int) -> None:
    opened = "for (const one of document.querySelectorAll('details')) one.open = true;"
    found = asked(page, opened + _MEASURE, width=width)
    assert found["inner"] == width
    assert found["scroll"] <= width
    assert len(found["figures"]) == 4 and all(height > 60 for height in found["figures"])
    assert found["filter"] is False


def test_light_and_dark_reach_the_figures(page: Path) -> None:
    light, dark = asked(page, _MEASURE), asked(page, _MEASURE, DARK)
    assert light["background"] == "rgb(255, 255, 255)"
    assert dark["background"] != light["background"]
    assert dark["line"] != light["line"] != "none"


@pytest.mark.parametrize(
    ("wanted", "samples", "problems", "said"),
    [
        ("CRASH|wrong_", 5, ["2_Sum", "4_RMSNorm_fp32"], "5 of 14 samples, 2 of 4 problems"),
        ("softmax", 4, ["3_Softmax"], "4 of 14 samples, 1 of 4 problems"),
        (" faster", 2, ["1_ReLU", "2_Sum"], "2 of 14 samples, 2 of 4 problems"),
        ("nothing", 0, [], "0 of 14 samples, 0 of 4 problems"),
    ],
)
def test_the_filter_hides_what_it_does_not_match(
    page: Path, wanted: str, samples: int, problems: list[str], said: str
) -> None:
    found = asked(page, _FILTER % wanted)
    assert (found["samples"], found["cells"], found["rows"]) == (samples, samples, len(problems))
    assert (found["problems"], found["said"], found["invalid"]) == (problems, said, False)


def test_a_bar_of_the_failures_and_the_legend_set_the_filter(page: Path) -> None:
    click = """document.querySelector("%s").click();
    setTimeout(() => document.body.dataset.found = JSON.stringify([document.getElementById("filter").value,
      document.querySelectorAll("#problems tbody tr:not([hidden])").length]), 300);"""
    assert asked(page, click % "#failed .bars a") == ["\\bcrash\\b", 1]
    assert asked(page, click % ".legend a.faster") == ["^\\S+ faster\\b", 2]


def test_a_column_sorts_the_table_either_way(page: Path) -> None:
    script = """const rows = () => [...document.querySelectorAll("#problem-table tbody tr")].map((row) => row.id);
    const head = document.querySelector("#problem-table th");
    const found = [rows()];
    for (const _ of [1, 2]) { head.querySelector("button").click(); found.push([head.ariaSort, ...rows()]); }
    document.body.dataset.found = JSON.stringify(found);"""
    assert asked(page, script) == [
        ["row-p1", "row-p2", "row-p3", "row-p4"],
        ["ascending", "row-p1", "row-p2", "row-p3", "row-p4"],
        ["descending", "row-p4", "row-p3", "row-p2", "row-p1"],
    ]


def test_on_a_telephone_every_problem_has_its_drawing_in_view(page: Path) -> None:
    script = f"""{SAY}([...document.querySelectorAll("#problem-table .plot")].map((plot) => {{
      const box = plot.getBoundingClientRect();
      return box.left >= 0 && box.right <= innerWidth && box.width > 250; }}));"""
    assert asked(page, script, width=390) == [True] * 4


def test_what_is_no_expression_is_said_and_hides_nothing(page: Path) -> None:
    found = asked(page, _FILTER % "(")
    assert found["invalid"] is True
    assert found["said"]
    assert found["samples"] == 14


def test_a_samples_box_opens_it(page: Path) -> None:
    script = f"""location.hash = "p1-1-1";
    setTimeout(() => {{ {SAY}({{open: document.getElementById("p1-1-1").closest("details").open}}); }}, 500);"""
    assert asked(page, script) == {"open": True}


@pytest.mark.parametrize("flags", [(), (DARK,)])
def test_axe_finds_nothing(page: Path, flags: tuple[str, ...]) -> None:
    assert violations(page, *flags) == []
