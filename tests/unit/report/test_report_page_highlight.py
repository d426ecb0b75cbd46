from __future__ import annotations

import html
import re
import time

import pytest

from hkbench.report.page.highlight import code_html, diff_html


def plain(found: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", found))


SOURCE = '''import torch

SOURCE = r"""
#include <vector>
void f(float x) { return; }
"""
DOC = """no code at all"""
'''


def test_the_text_is_the_source() -> None:
    assert plain(code_html(SOURCE)) == SOURCE.rstrip("\n")
    for odd in ("", "\n", "x = '''#include <a>", "\t\\", "def (:\n  '<&>\"", 'f"""{a}\n#include"""'):
        assert plain(code_html(odd)) == odd.removesuffix("\n")


def test_cpp_in_strings_is_cpp() -> None:
    found = code_html(SOURCE)
    assert '<span class="cpf">&lt;vector&gt;</span>' in found
    assert '<span class="kt">void</span>' in found
    assert re.search(r'class="s\w*">no code at all', found) or "no code at all" in plain(found)


def test_each_line_is_closed() -> None:
    for line in code_html(SOURCE).split("\n"):
        assert line.startswith("<span>") and line.count("<span") == line.count("</span>")


def test_a_diff_shows_what_changed() -> None:
    found = diff_html("a\nb\nc\n", "a\n<b>\nc\n")
    assert found is not None
    assert plain(found).splitlines() == ["@@ -1,3 +1,3 @@", " a", "-b", "+<b>", " c"]
    assert 'class="gi"' in found and 'class="gd"' in found and "<b>" not in found
    assert diff_html("a\n", "a\n") is None


@pytest.mark.parametrize("start", ["", 'S = r"""#include <a>\n', 'f"'])
@pytest.mark.parametrize("part", ["\n", " \n", 'R"(', "a a(a) ", "(", "x\n\n\n"])
def test_odd_code_takes_no_long_time(start: str, part: str) -> None:
    code = start + (part * 60_000)[:60_000] + '"""'
    started = time.process_time()
    assert plain(code_html(code)) == re.sub(r"(?m)^ +$", "", code)
    assert time.process_time() - started < 5
