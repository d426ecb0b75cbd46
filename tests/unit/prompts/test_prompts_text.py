"""Cleaning and cutting what tools and models wrote, and the figures of tensors."""

from __future__ import annotations

import pytest
from prompts_samples import facts

from hkbench.prompts import figures
from hkbench.prompts.text import clean, ending, fenced, first_errors
from hkbench.records import ScalarFact, TensorFact


@pytest.mark.parametrize(
    ("dirty", "clear"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("a\x1b(Bb\x1b=c", "abc"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("tab\tstays\n", "tab\tstays\n"),
        ("\x00\x08\x7f\x9b31m", "31m"),
        ("\ud800", "?"),
        ("größer → ok", "größer → ok"),
    ],
)
def test_clean(dirty: str, clear: str) -> None:
    assert clean(dirty) == clear


def test_a_fence_is_longer_than_what_it_holds() -> None:
    assert fenced("x = 1\n", "python") == "```python\nx = 1\n```"
    assert fenced("a ```` b") == "`````\na ```` b\n`````"


def test_the_first_errors_stay_with_the_lines_around_them() -> None:
    noise = [f"note: line {number}" for number in range(400)]
    text = "\n".join([*noise, "k.hip:7:3: error: no matching function", "  mma(c, a, b);", "  ^~~", *noise])
    cut = first_errors(text, 1000)
    assert len(cut) <= 1000
    assert "error: no matching function\n  mma(c, a, b);\n  ^~~" in cut
    assert cut.startswith("[... 398 lines left out]\nnote: line 398")
    assert cut.endswith("lines left out]")


def test_of_many_errors_the_first_are_kept() -> None:
    text = "\n".join(f"a.cpp:{number}: error: number {number}" + " x" * 20 for number in range(500))
    cut = first_errors(text, 2000)
    assert "number 0 " in cut
    assert "number 499" not in cut
    assert len(cut) <= 2000


def test_a_long_command_line_does_not_hide_the_error() -> None:
    cut = first_errors("c++ " + "-DX " * 5000 + "\na.cpp:1: error: here", 1000)
    assert "error: here" in cut
    assert "[... line cut]" in cut


def test_without_an_error_line_the_end_is_kept() -> None:
    assert first_errors("start\n" + "x\n" * 3000 + "last words", 100).endswith("last words")


def test_ending_cuts_at_a_line() -> None:
    assert ending("short") == "short"
    assert ending("\n".join(f"line {number}" for number in range(100)), 60).split("\n")[1:] == [
        "line 96", "line 97", "line 98", "line 99",
    ]  # fmt: skip


def test_tensors_are_described_with_strides_only_where_they_matter() -> None:
    shape = (4, 8)
    assert figures.describe(TensorFact(name="x", shape=shape, dtype="float32", strides=(8, 1))) == "x: (4, 8) float32"
    turned = TensorFact(name="x", shape=shape, dtype="float32", strides=(1, 4))
    assert figures.describe(turned) == "x: (4, 8) float32, strides (1, 4)"
    assert figures.describe(TensorFact(name="s", shape=(), dtype="bool", strides=())) == "s: () bool"
    assert figures.describe(TensorFact(name="v", shape=(3,), dtype="int64", strides=(1,))) == "v: (3,) int64"
    assert figures.describe(ScalarFact(name="eps", value="1e-06")) == "eps = 1e-06"


def test_traffic() -> None:
    of = facts("1_X_bf16")
    moved = 3 * 4096 * 1000 * 2 + 1000 * 2
    assert figures.traffic_bytes(of) == moved
    assert figures.least_ms(of, 1.0) == pytest.approx(moved / 1e6)
    assert figures.dtypes(of) == ["bfloat16"]
