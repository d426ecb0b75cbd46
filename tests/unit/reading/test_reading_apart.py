"""A file is parsed and read in a process that may end: whatever it is, the reader learns what became of it."""

from __future__ import annotations

import pytest

from hkbench.reading import SOURCE_BYTES, apart as module, read_apart, read_candidate
from hkbench.records import Track

GOOD = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
#: C++ whose parser takes a time that grows faster than the square of its length.
NESTED_NAMES = GOOD + 'S = r"""#include <x>\nint x = ' + "a<b>::" * 8_000 + 'c;"""\n'


def test_a_file_is_read_as_in_this_process() -> None:
    read = read_apart(GOOD.encode(), "cpp", Track.OWN)
    assert (read.error, read.unread) == (None, None)
    assert read.findings == read_candidate(GOOD, "cpp", Track.OWN)
    assert read.findings


@pytest.mark.parametrize("source", [b"class ModelNew(:\n  pass\n", b"x = 1\ny = (\n", b"\xff\xfe", b"f'{\\ud800}'"])
def test_the_parser_says_what_it_would_say_here(source: bytes) -> None:
    with pytest.raises(SyntaxError) as here:
        compile(source, "<unknown>", "exec")
    error = read_apart(source, "cpp", Track.OWN).error
    assert isinstance(error, SyntaxError)
    assert (error.msg, error.lineno, error.offset) == (here.value.msg, here.value.lineno, here.value.offset)


@pytest.mark.parametrize(
    "source",
    [b"x = 1\0", b"x = " + b"(" * 5000, b"x = " + b"-" * 200_000 + b"1", b"x = a" + b".b" * 100_000, b"[" * 90],
    ids=["null", "brackets", "signs", "attributes", "open"],
)
def test_what_is_not_python_is_an_error(source: bytes) -> None:
    read = read_apart(source, "cpp", Track.OWN)
    assert read.error is not None or read.unread is not None
    assert not read.findings


def test_a_large_file_is_not_read() -> None:
    read = read_apart(b"x = 1\n" * (SOURCE_BYTES // 6 + 1), "cpp", Track.OWN)
    assert read.unread is not None and str(SOURCE_BYTES) in read.unread


def test_a_file_that_takes_too_much_memory_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY_BYTES", 16 << 20)
    read = read_apart(b"x = 1\n" * (SOURCE_BYTES // 6), "cpp", Track.OWN)
    found = [one.rule for one in read.findings]  # memory that the process had before may be enough for the parser
    assert (read.error or read.unread) is not None or found == ["unreadable"]


def test_rules_that_take_too_long_leave_the_file_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 2.5)  # the parser has them too
    read = read_apart(NESTED_NAMES.encode(), "cpp", Track.OWN)
    assert (read.error, read.unread) == (None, None)
    assert [one.rule for one in read.findings] == ["unreadable"]
