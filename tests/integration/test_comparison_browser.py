"""comparison.html in a real browser, opened from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.browser import CHROMIUM, DARK, SAY, asked, look, violations
from support.compared_runs import EVIL, compared_run

from hkbench.report.write import write_comparison, write_reports

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the page is not tried in a browser"),
]

_OPENED = "for (const one of document.querySelectorAll('details')) one.open = true;"
_MEASURE = f"""{SAY}({{
  inner: innerWidth, scroll: document.documentElement.scrollWidth,
  figures: [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().height),
  background: getComputedStyle(document.body).backgroundColor,
  lines: [1, 2, 3].map((n) => getComputedStyle(document.querySelector(`#fast-p path[style*='--run-${{n}}']`)).stroke),
}});"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    compared_run(root / "a", [2.0, 0.5, None, 3.0, 1.5, 2.5, None])
    long = f"a_model_with_a_name_that_is_much_longer_than_a_column_is_wide {EVIL}"
    compared_run(root / "b", [1.0, 2.0, 0.5, None, 1.2, 2.0, None, 4.0], model=long)
    compared_run(root / "c", [4.0, 0.5, None, 2.0, 3.0, 5.0, 1.0])
    write_reports(root / "b")
    return write_comparison([root / name for name in "abc"])[1]


def test_the_console_is_silent_and_models_text_does_nothing(page: Path) -> None:
    document, console = look(page)
    assert console == []
    assert "<title>test-model (a), a_model_with_a_name_that_is" in document


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_and_all_figures_are_there(page: Path, width: int) -> None:
    found = asked(page, _OPENED + _MEASURE, width=width)
    assert found["inner"] == width
    assert found["scroll"] <= width
    assert len(found["figures"]) == 4 and all(height > 60 for height in found["figures"])


def test_light_and_dark_reach_the_figures(page: Path) -> None:
    light, dark = asked(page, _MEASURE), asked(page, _MEASURE, DARK)
    assert dark["background"] != light["background"]
    assert len({*light["lines"], *dark["lines"]}) == 6 and "none" not in light["lines"]


@pytest.mark.parametrize("flags", [(), (DARK,)])
def test_axe_finds_nothing(page: Path, flags: tuple[str, ...]) -> None:
    assert violations(page, *flags) == []
