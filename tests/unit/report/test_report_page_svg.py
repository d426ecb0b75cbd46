from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hkbench.report.page.svg import COLOURS, FAST, drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def dot(colour: str, label: str = "x") -> str:
    def draw(canvas: Figure) -> None:
        axes = canvas.add_subplot()
        axes.plot([1, 2], [1, 2], "o", color=colour)
        axes.set_xlabel(label)

    return drawn("fig", "A <title>", "What it <shows>.", 3, 2, draw)


def test_colours_are_the_pages_variables() -> None:
    svg = dot(FAST)
    assert f"var({COLOURS[FAST]})" in svg
    assert not re.search(r"#[0-9a-f]{6}\b(?=[;\"])", re.sub(r'(href="|url\()#[^"\)]*', "", svg))


def test_a_colour_without_a_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="#123456 is not a colour of figures"):
        dot("#123456")


def test_text_stays_text_and_is_escaped() -> None:
    svg = dot(FAST, 'a $b$ <script> id="me" style="color: #123456"')
    assert "a $b$ &lt;script&gt;" in svg
    assert "<script>" not in svg
    assert 'id="me"' in svg  # between tags nothing is changed
    assert "A &lt;title&gt;" in svg
    assert '<desc id="fig-desc">What it &lt;shows&gt;.</desc>' in svg


def test_nothing_of_the_stand_alone_file_is_left() -> None:
    svg = dot(FAST)
    assert svg.startswith("<svg viewBox=")
    for left in ("<?xml", "<!DOCTYPE", "<metadata", "<style", "http", "<!--", "DejaVu"):
        assert left not in svg
    assert all(found.startswith("fig-") for found in re.findall(r'\bid="([^"]*)"', svg))


def test_letters_that_the_font_lacks_are_no_warning() -> None:
    assert "核" in dot(FAST, "核")
