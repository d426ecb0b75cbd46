"""Diffs as models write them: right lines, wrong numbers."""

from __future__ import annotations

import difflib
import random

import pytest

from hkbench.llm.diff import DiffError, apply_diff, looks_like_diff

SOURCE = "".join(f"line {i}\n" for i in range(1, 201))


def hunk(at: int, header: str | None = None) -> str:
    """Changes line `at`, with a line of context on each side."""
    return f"{header or f'@@ -{at - 1},3 +{at - 1},3 @@'}\n line {at - 1}\n-line {at}\n+changed {at}\n line {at + 1}\n"


def changed(*numbers: int) -> str:
    return "".join(f"{'changed' if i in numbers else 'line'} {i}\n" for i in range(1, 201))


@pytest.mark.parametrize("seed", range(20))
def test_what_difflib_writes_is_applied(seed: int) -> None:
    random_ = random.Random(seed)
    old = [f"{random_.randrange(9)}" for _ in range(60)]
    new = [line for line in old if random_.random() > 0.1]
    for _ in range(5):
        new.insert(random_.randrange(len(new)), "inserted")
    diff = "\n".join(difflib.unified_diff(old, new, "a", "b", lineterm="", n=3))
    assert apply_diff(diff, "\n".join(old) + "\n") == "\n".join(new) + "\n"


@pytest.mark.parametrize(
    "header",
    ["@@ -49,3 +49,3 @@", "@@ -49,99 +1,2 @@", "@@ -20,3 +20,3 @@", "@@ -150,3 +150,3 @@", "@@ -9999 +9999 @@",
     "@@ -49 +49 @@ def forward", "@@ ... @@", "@@"],
)  # fmt: skip
def test_numbers_may_be_wrong(header: str) -> None:
    assert apply_diff(hunk(50, header), SOURCE) == changed(50)


def test_several_hunks_and_no_file_lines() -> None:
    assert apply_diff(hunk(10) + hunk(90) + hunk(180), SOURCE) == changed(10, 90, 180)


def test_git_headers() -> None:
    head = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n"
    assert apply_diff(head + hunk(10), SOURCE) == changed(10)


def test_a_whole_block_without_hunk_headers() -> None:
    assert apply_diff(" line 9\n-line 10\n+changed 10\n line 11\n", SOURCE) == changed(10)


def test_lost_spaces_and_the_sources_own() -> None:
    source = "a  \n\n    b\nc\n"
    assert apply_diff("@@ -1,4 +1,4 @@\n a\n\n     b\n-c\n+d", source) == "a  \n\n    b\nd\n"


def test_drift_is_carried_to_later_hunks() -> None:
    repeated = "start\n" + "x\n" * 5 + "a\nsame\nb\n" + "y\n" * 100 + "a\nsame\nb\n"
    diff = "@@ -1,1 +1,1 @@\n-start\n+begin\n@@ -108,3 +108,3 @@\n a\n-same\n+new\n b\n"
    assert apply_diff(diff, repeated).endswith("y\na\nnew\nb\n")
    assert apply_diff(diff, repeated).count("same") == 1


def test_added_lines_that_look_like_headers() -> None:
    assert apply_diff("@@ -1,2 +1,3 @@\n line 1\n+++ x\n line 2\n", "line 1\nline 2\n") == "line 1\n++ x\nline 2\n"


def test_no_newline_mark() -> None:
    assert apply_diff("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file", "a") == "b"


def test_a_new_file() -> None:
    assert apply_diff("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n", "old\n") == "a\nb\n"


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        (hunk(50).replace("line 51", "line 52"), "not together"),
        (hunk(50).replace(" line 49", " other"), "no line 'other'"),
        (hunk(90) + hunk(10), "hunk 2 does not match"),
        ("@@ -1 +1 @@\n line 1\n", "no hunk"),
        ("", "no hunk"),
        ("@@ -5,0 +6 @@\n+added\n", "no context"),
        (hunk(2) * 401, "more than 400"),
    ],
)
def test_refused(diff: str, message: str) -> None:
    with pytest.raises(DiffError, match=message):
        apply_diff(diff, SOURCE)


def test_two_places_and_a_line_number_far_from_both() -> None:
    source = "a\nb\n" + "x\n" * 300 + "a\nb\n"
    with pytest.raises(DiffError, match="several places"):
        apply_diff("@@ -150,2 +150,2 @@\n a\n-b\n+c\n", source)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("--- a\n+++ b\n@@ -1 +1 @@\n", True),
        ("\n@@ -1,2 +1,2 @@\n", True),
        ("x = 1\n--- a\n", False),
        ("@decorator\ndef f(): ...\n", False),
    ],
)
def test_looks_like_diff(text: str, verdict: bool) -> None:
    assert looks_like_diff(text) is verdict
