"""Reading ends within seconds and never raises, whatever it is given."""

from __future__ import annotations

import random
import time

import pytest

from hkbench.reading import read_candidate
from hkbench.reading.budget import SECONDS, STEPS, Budget
from hkbench.records import Track

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
    "calls of calls": source("\n".join(["int f() { return f", *["()" * 1000] * 20, "; }"])),
    "calls in calls": source("\n".join(["int f() { return ", *["open(" * 1000] * 9, "1", *[")" * 1000] * 9, "; }"])),
    "many calls in a line": source("int f() { " + "fork();" * 7_000 + " }"),
    "comprehensions in comprehensions": f"x = ({'1, ' * 4_999})\ny = [[[a for a in x] for b in x] for c in x]",
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
    found = read_candidate(text, "cpp", Track.OWN)
    assert "unreadable" in {f.rule for f in found}
    assert time.thread_time() - start < 5


def test_the_whole_budget_is_a_matter_of_seconds() -> None:
    start = time.thread_time()
    assert "unreadable" in {f.rule for f in read_candidate(MACRO_BOMB, "cpp", Track.OWN)}
    assert time.thread_time() - start < 2 * SECONDS


@pytest.mark.parametrize("text", MUST_END.values(), ids=MUST_END.keys())
def test_ends(text: str) -> None:
    start = time.thread_time()
    found = read_candidate(text, "cpp", Track.OWN)
    assert list(found) == sorted(found, key=lambda f: f.line or 0)
    assert time.thread_time() - start < 10


def test_what_would_be_large_or_fail_is_no_constant() -> None:
    expressions = ["10**0 * 'ab'", "9999999999 * 'ab'", "b'ab' * 9999999999", "(1,) * 9999999999", "bytes(9999999999)"]
    expressions += ["3 % 0", "'%d' % 'a'", "-'a'", "'abc'[5]", "'abc'[::0]", "chr()", "'a'.join()", "bytes.fromhex(5)"]
    found = read_candidate("\n".join(f"x = {one}" for one in expressions), "cpp", Track.OWN)
    assert {f.rule for f in found} == {"py-no-kernel"}
