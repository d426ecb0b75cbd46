"""Which rule finds the code, and what it finds."""

from __future__ import annotations

import pytest

from hkbench.llm import blocks
from hkbench.llm.extract import extract
from hkbench.records import ExtractionRule as Rule

MODEL = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
OTHER = MODEL.replace("+ 1", "+ 2")
HELPER = "import torch\n\ndef helper(x):\n    return x\n"
BROKEN = "import torch\nclass ModelNew(torch.nn.Module:\n    pass\n"
CPP = "#include <torch/extension.h>\n__global__ void f() {}\n"
DOCSTRING = 'class ModelNew:\n    """Use it:\n\n```\nModelNew()\n```\n    """\n'


def fenced(text: str, language: str = "python", fence: str = "```") -> str:
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}\n"


def indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


FOUND: dict[str, tuple[str, Rule, str]] = {
    # one block
    "one block": (fenced(MODEL), Rule.ONLY_BLOCK, MODEL),
    "prose around": (f"Here it is:\n{fenced(MODEL)}\nIt is *fast*.", Rule.ONLY_BLOCK, MODEL),
    "py": (fenced(MODEL, "py"), Rule.ONLY_BLOCK, MODEL),
    "python3": (fenced(MODEL, "python3"), Rule.ONLY_BLOCK, MODEL),
    "capital": (fenced(MODEL, "Python"), Rule.ONLY_BLOCK, MODEL),
    "title after the language": (fenced(MODEL, 'python title="x.py"'), Rule.ONLY_BLOCK, MODEL),
    "file after the language": (fenced(MODEL, "python:model.py"), Rule.ONLY_BLOCK, MODEL),
    "braces": (fenced(MODEL, "{.python}"), Rule.ONLY_BLOCK, MODEL),
    "no language": (fenced(MODEL, ""), Rule.ONLY_BLOCK, MODEL),
    "wrong language": (fenced(MODEL, "cpp"), Rule.ONLY_BLOCK, MODEL),
    "tildes": (fenced(MODEL, fence="~~~"), Rule.ONLY_BLOCK, MODEL),
    "long fence": (fenced(MODEL, fence="`````"), Rule.ONLY_BLOCK, MODEL),
    "CRLF": (fenced(MODEL).replace("\n", "\r\n"), Rule.ONLY_BLOCK, MODEL),
    "CR": (fenced(MODEL).replace("\n", "\r"), Rule.ONLY_BLOCK, MODEL),
    "byte order mark": ("\ufeff" + fenced(MODEL), Rule.ONLY_BLOCK, MODEL),
    "shell block beside": (f"{fenced('pip install x', 'bash')}{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "output beside": (f"{fenced(MODEL)}{fenced('speed-up 2', 'text')}", Rule.ONLY_BLOCK, MODEL),
    "empty block beside": (f"{fenced('')}\n{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "syntax error": (fenced(BROKEN), Rule.ONLY_BLOCK, BROKEN),
    "terminal escape stays": (fenced(f"# \x1b[31mred\n{MODEL}"), Rule.ONLY_BLOCK, f"# \x1b[31mred\n{MODEL}"),
    "invalid escape in a string": (fenced(f'A = "\\d"\n{MODEL}'), Rule.ONLY_BLOCK, f'A = "\\d"\n{MODEL}'),
    "unicode": (fenced(f"# größer\n{MODEL}"), Rule.ONLY_BLOCK, f"# größer\n{MODEL}"),
    # indentation, lists, quotations, nesting
    "indented fence": (indented(fenced(MODEL), "  "), Rule.ONLY_BLOCK, MODEL),
    "in a list": (f"1. First:\n\n{indented(fenced(MODEL), '   ')}", Rule.ONLY_BLOCK, MODEL),
    "deep in a list": (f"- a\n  - b\n\n{indented(fenced(MODEL), '      ')}", Rule.ONLY_BLOCK, MODEL),
    "tab": (indented(fenced(MODEL), "\t"), Rule.ONLY_BLOCK, MODEL),
    "on the list mark's line": ("- " + indented(fenced(MODEL), "  ").lstrip(), Rule.ONLY_BLOCK, MODEL),
    "list, code not indented": (f"- It:\n     ```python\n{MODEL}     ```\n", Rule.ONLY_BLOCK, MODEL),
    "quotation": (indented(fenced(MODEL), "> "), Rule.ONLY_BLOCK, MODEL),
    "fence in a docstring": (fenced(DOCSTRING), Rule.ONLY_BLOCK, DOCSTRING),
    "fence in an indented docstring": (
        fenced(DOCSTRING.replace("```", "    ```")), Rule.ONLY_BLOCK, DOCSTRING.replace("```", "    ```"),
    ),
    "three in four": (fenced(DOCSTRING, fence="````"), Rule.ONLY_BLOCK, DOCSTRING),
    "wrapped in markdown": (fenced(f"# It\n{fenced(MODEL)}", "markdown", "````"), Rule.ONLY_BLOCK, MODEL),
    "wrapped in markdown of as many": (fenced(fenced(MODEL), "markdown"), Rule.UNCLOSED_BLOCK, MODEL),
    # several blocks
    "last wins": (fenced(MODEL) + fenced(OTHER), Rule.LAST_MODEL_NEW, OTHER),
    "helper after": (fenced(MODEL) + fenced(HELPER), Rule.LAST_MODEL_NEW, MODEL),
    "helper before": (fenced(HELPER) + fenced(MODEL), Rule.LAST_MODEL_NEW, MODEL),
    "C++ beside": (fenced(CPP, "cpp") + fenced(MODEL), Rule.LAST_MODEL_NEW, MODEL),
    "last that parses": (fenced(MODEL) + fenced(BROKEN), Rule.LAST_MODEL_NEW, MODEL),
    "none parses": (fenced(BROKEN + "# 1\n") + fenced(BROKEN), Rule.LAST_MODEL_NEW, BROKEN),
    "named in a comment only": (fenced("# class ModelNew\n" + HELPER) + fenced(MODEL), Rule.LAST_MODEL_NEW, MODEL),
    "file before diff": (fenced(MODEL) + fenced("@@ -1 +1 @@\n-a\n+b\n", "diff"), Rule.LAST_MODEL_NEW, MODEL),
    # no ModelNew
    "no ModelNew": (fenced(HELPER), Rule.MAX_BLOCK, HELPER),
    "largest": (fenced("x = 1\n") + fenced(HELPER) + fenced("y = 2\n"), Rule.MAX_BLOCK, HELPER),
    "largest is not the C++": (fenced(CPP * 9, "cpp") + fenced(HELPER), Rule.MAX_BLOCK, HELPER),
    "python without a label": (fenced(HELPER, ""), Rule.MAX_BLOCK, HELPER),
    "python that does not parse": (fenced("def f(:\n"), Rule.MAX_BLOCK, "def f(:\n"),
    "ModelNew only in a string": (fenced('s = "class ModelNew"\n'), Rule.MAX_BLOCK, 's = "class ModelNew"\n'),
    # never closed
    "unclosed": (f"Here:\n```python\n{MODEL}", Rule.UNCLOSED_BLOCK, MODEL),
    "unclosed and cut": ("```python\nclass ModelNew:\n    def f(", Rule.UNCLOSED_BLOCK, "class ModelNew:\n    def f("),
    "unclosed without ModelNew": ("```python\nimport torch\n", Rule.UNCLOSED_BLOCK, "import torch\n"),
    "closed, then cut": (f"{fenced(MODEL)}```python\nclass ModelNew(\n", Rule.LAST_MODEL_NEW, MODEL),
    # no block
    "bare": (MODEL, Rule.BARE_SOURCE, MODEL),
    "bare with blank lines": (f"\n\n{MODEL}\n\n", Rule.BARE_SOURCE, MODEL),
    "bare, closing fence only": (f"{MODEL}```\n", Rule.BARE_SOURCE, MODEL),
    "bare after thinking": (f"<think>hm</think>\n{MODEL}", Rule.BARE_SOURCE, MODEL),
    # thinking
    "after thinking": (f"<think>\nLet me see.\n</think>\n{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "thinking on one line": (f"<think>x</think>{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "draft in thinking": (f"<think>\n{fenced(OTHER)}</think>\n{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "open fence in thinking": (f"<think>\n```python\nx\n</think>\n{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "thinking begun in the prompt": (f"hm\n{fenced(OTHER)}</think>\n{fenced(MODEL)}", Rule.ONLY_BLOCK, MODEL),
    "thinking twice": (
        f"<think>a</think>\n{fenced(MODEL)}<think>\n{fenced(OTHER)}</think>\nDone.", Rule.ONLY_BLOCK, MODEL,
    ),
    "thinking tag in code": (
        fenced(MODEL + 'TAG = "<think>"\n'), Rule.ONLY_BLOCK, MODEL + 'TAG = "<think>"\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_found(case: str) -> None:
    reply, rule, source = FOUND[case]
    result = extract(reply, None)
    assert (result.rule, result.source) == (rule, source)


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>\n{fenced(MODEL)}</think>\nThat is my answer.",
        f"<think>\n{fenced(MODEL)}",
        f"<thinking>\n{fenced(MODEL)}\nand so on",
        f"{fenced(MODEL)}</think>",
    ],
)
def test_thinking_is_the_last_place_looked_into(reply: str) -> None:
    result = extract(reply, None)
    assert (result.rule, result.source) == (Rule.ONLY_BLOCK, MODEL)
    assert result.note is not None
    assert "thinking" in result.note


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("I cannot do that.", "no Python"),
        ("```\n```", "no Python"),
        (fenced("hello", ""), "no Python"),
        (fenced("pip install x", "bash"), "no Python"),
        (fenced(CPP, "cpp"), "C++ but no Python file with ModelNew"),
        (fenced(CPP, "hip"), "C++"),
        (fenced(CPP, ""), "C++"),
        (f"<think>{fenced(MODEL)}</think>\n{fenced(CPP, 'cpp')}", "C++"),
        (f"Prose, then {MODEL}", "no Python"),
        (fenced(MODEL + "\0"), "NUL"),
        (fenced(MODEL) + "\ud800", "Unicode"),
    ],
)
def test_notes(reply: str, note: str) -> None:
    result = extract(reply, None)
    assert (result.rule, result.source) == (Rule.NONE, None)
    assert result.note is not None
    assert note in result.note


def test_unclosed_block_says_so() -> None:
    assert extract("```python\n" + MODEL, None).note == "the code block was never closed"


DIFF = "--- a/code.py\n+++ b/code.py\n@@ -4,2 +4,2 @@\n"
DIFF += "     def forward(self, x):\n-        return x + 1\n+        return x + 2\n"


@pytest.mark.parametrize(
    "reply",
    [
        fenced(DIFF, "diff"),
        fenced(DIFF, "patch"),
        fenced(DIFF, ""),
        f"Change one line:\n{fenced(DIFF, 'diff')}\nDone.",
        DIFF,
        f"<think>easy</think>\n{DIFF}",
        fenced(DIFF.replace("\n", "\r\n"), "diff"),
        "```diff\n" + DIFF,
        fenced(HELPER) + fenced(DIFF, "diff"),
    ],
)
def test_diff_is_applied_to_the_parent(reply: str) -> None:
    result = extract(reply, MODEL)
    assert (result.rule, result.source) == (Rule.APPLIED_DIFF, OTHER)


def test_diff_without_parent() -> None:
    result = extract(fenced(DIFF, "diff"), None)
    assert (result.rule, result.source) == (Rule.NONE, None)
    assert "no earlier code" in (result.note or "")


def test_diff_that_does_not_apply() -> None:
    result = extract(fenced(DIFF, "diff"), HELPER)
    assert (result.rule, result.source) == (Rule.NONE, None)
    assert "does not apply: hunk 1" in (result.note or "")


HOSTILE = {
    "backticks": "`" * 1_000_000,
    "fence lines": "```\n" * 250_000,
    "blocks": fenced("x = 1\n") * 50_000,
    "broken candidates": fenced("class ModelNew(\n") * 30_000,
    "thinking": "<think>\n" * 120_000,
    "quotations": "> > > > ```\n" * 80_000,
    "lists": "- ```\n" * 160_000,
    "tildes": "~" * 1_000_000 + "`",
    "nesting": fenced("class ModelNew:\n    x = " + "(" * 1_000_000),
    "long sum": fenced("class ModelNew:\n    x = 1" + "+1" * 300_000 + "\n"),
    "hunks": fenced("@@ -1 +1 @@\n-x\n+y\n" * 50_000, "diff"),
    "spaces": (" " * 1_000 + "x\n") * 1_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_megabyte_ends(case: str) -> None:
    """Linear work: with a quadratic step each of these takes minutes to hours."""
    result = extract(HOSTILE[case], "x\n" * 1_000)
    assert (result.source is None) == (result.rule is Rule.NONE)


def test_a_block_that_is_too_large_to_be_parsed_goes_to_the_judge() -> None:
    """Which says so."""
    large = MODEL + "x = 1\n" * (blocks.MAX_PARSED // 6)
    assert blocks.parsed(large[: blocks.MAX_PARSED - 1]) is not None
    assert blocks.parsed(large) is None
    assert extract(fenced(large), None).source == large


DIFF = "@@ -4,2 +4,2 @@\n     def forward(self, x):\n-        return x + 1\n+        return x + 3\n"


def test_a_whole_file_beside_a_diff_says_what_became_of_the_diff() -> None:
    reply = f"{fenced(DIFF, 'diff')}\nor\n{fenced(OTHER)}"
    applied = extract(reply, MODEL)
    assert (applied.rule, applied.source) == (Rule.LAST_MODEL_NEW, OTHER)
    assert applied.note == "the whole file is taken, not the diff beside it"
    fallen = extract(reply, OTHER)
    assert (fallen.rule, fallen.source) == (Rule.LAST_MODEL_NEW, OTHER)
    assert fallen.note is not None and "does not apply: hunk 1 does not match" in fallen.note
    assert extract(fenced(OTHER), MODEL).note is None
