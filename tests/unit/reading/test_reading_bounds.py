"""Reading ends within seconds and never raises, whatever it is given."""

from __future__ import annotations

import random
import time

import pytest

from hkbench.reading import read_candidate
from hkbench.reading.budget import SECONDS, STEPS, Budget
from hkbench.records import Backend, Track

_ORDER = random.Random(7)


def source(text: str) -> str:
    return f'S = r"""#include <x>\n{text}\n"""\n'


MACRO_BOMB = source("\n".join(f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, 60)) + "\nint x = A59;")
NESTED_MACRO = source("#define F(...) __VA_ARGS__ __VA_ARGS__\nint x = " + "F(" * 300 + "1" + ")" * 300 + ";")

MUST_GIVE_UP = {
    "five megabytes": "x = 1\n" * 900_000,
    "two thousand brackets": "x = " + "(" * 2000 + ")" * 2000,
    "null bytes": "x = 1\0",
    "a sum of fifty thousand": "x = " + "+".join(["a"] * 50_000),
    "macro bomb": MACRO_BOMB,
    "macros of macros": NESTED_MACRO,
    "much C++": source("int f() { a(); b::c(1); }\n" * 12_000),
    "strings that grow": "s = 'x' * 1000000\n" + "\n".join(f"a{i} = s + 'y{i}'" for i in range(15_000)),
}
MUST_END = {
    "junk": "".join(chr(_ORDER.randrange(1, 256)) for _ in range(100_000)),
    "surrogates": "x = '\ud800 #include'\n# \ud800",
    "open comments": source("/* " * 40_000),
    "open quotes": source('\\"' * 50_000),
    "open raw strings": source('R"a(' * 30_000),
    "braces": source("{\n" * 20_000),
    "brackets in C++": source("int f() { return " + "(" * 2000 + "1" + ")" * 2000 + "; }"),
    "names bound to themselves": "x = torch\n" + "x = x.foo(x).bar\n" * 1_000,
    "functions that return each other": "\n".join(f"def a{i}(): return a{i - 1}() or a{i - 1}()" for i in range(2000)),
    "wide formats": "s = '{:{}}'.format('a', 10**9)\nt = '%999999999d' % 1\nu = '{:>999999999}'.format(1)",
    "a bracket that is cut": "class ModelNew:\n    def forward(self, x):\n        return f(x",
    "empty": "",
}


@pytest.mark.parametrize("text", MUST_GIVE_UP.values(), ids=MUST_GIVE_UP.keys())
def test_gives_up_and_says_so(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget.__init__, "__defaults__", (0.5, STEPS))  # of the whole budget once, below
    start = time.thread_time()
    found = read_candidate(text, Backend.CPP, Track.OWN)
    assert "unreadable" in {f.rule for f in found}
    assert time.thread_time() - start < 5


def test_the_whole_budget_is_a_matter_of_seconds() -> None:
    start = time.thread_time()
    assert "unreadable" in {f.rule for f in read_candidate(MACRO_BOMB, Backend.CPP, Track.OWN)}
    assert time.thread_time() - start < 2 * SECONDS


@pytest.mark.parametrize("text", MUST_END.values(), ids=MUST_END.keys())
def test_ends(text: str) -> None:
    start = time.thread_time()
    found = read_candidate(text, Backend.CPP, Track.OWN)
    assert list(found) == sorted(found, key=lambda f: f.line or 0)
    assert time.thread_time() - start < 10
