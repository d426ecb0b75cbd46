"""Research: what of files, hints and earlier runs it finds, where it says that it stands, and its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.agents_bench import BOOK, FROM

from hkbench.agents.research import MAX_FINDINGS, MAX_LENGTH, ResearchTask, research, symbols_of
from hkbench.agents.shelves import Shelf, shelves
from hkbench.backends import find_backend
from hkbench.records import Failure, FailureKind, Remedy, Stage


def build_error(message: str, detail: str | None = None) -> Failure:
    return Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message, detail=detail)


@pytest.fixture
def headers(tmp_path: Path) -> Shelf:
    (tmp_path / "use.cuh").write_text("void g() {\n    mma_ABt(d, a, b, c);\n}\n")
    (tmp_path / "ops.cuh").write_text("// products\n\ntemplate<int N>\n__device__ static void mma_ABt(rt &d) {\n}\n")
    (tmp_path / "long.cuh").write_text(f"int mma_ABt_wide = 1; {'x' * 4000}\n")
    (tmp_path / "binary.cuh").write_bytes(b"\xff\xfe mma_ABt \x00")
    return Shelf("HK", tmp_path, ("*.cuh",))


def test_a_definition_comes_before_a_use_with_its_line(headers: Shelf) -> None:
    failure = build_error("main.cpp:3:1: error: no matching function for call to 'mma_ABt'")
    found = research(ResearchTask(failure, "hip", BOOK, shelves=(headers,)))
    assert found.symbols[0] == "mma_ABt"
    places = [one for one in found.findings if one.where.startswith("HK ")]
    assert places[0].where == "HK ops.cuh:4" and "static void mma_ABt" in places[0].text
    assert not any("long.cuh" in one.where for one in places), "a longer name is another one"
    hinted = [one.where for one in found.findings if "config.json" in one.where]
    assert hinted and "build_error." in hinted[0]


def test_earlier_runs_come_first_with_their_record(headers: Shelf) -> None:
    remedy = Remedy(text="take mma_ABt of four tiles", source=FROM, helped=3, tried=4)
    failure = build_error("error: use of undeclared identifier 'mma_ABt'")
    first = research(ResearchTask(failure, "hip", BOOK, (remedy,), (headers,))).findings[0]
    assert "helped 3 of 4" in first.where and first.text == remedy.text


def test_what_is_found_is_bounded(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.h").write_text(f"void foo(); // {'y' * 3000}\n")
    every = [Shelf(str(number), tmp_path, ("*.h",)) for number in range(20)]
    found = research(ResearchTask(build_error("error: 'foo' was not declared"), "cpp", BOOK, shelves=every))
    assert len(found.findings) == MAX_FINDINGS and all(len(one.text) <= MAX_LENGTH for one in found.findings)


def test_an_error_without_a_name_finds_nothing(headers: Shelf) -> None:
    found = research(ResearchTask(build_error("Killed"), "hip", BOOK, shelves=(headers,)))
    assert not found.findings and not found.symbols


@pytest.mark.parametrize(
    ("message", "symbol"),
    [
        ("CompilationError: module 'triton.language' has no attribute 'dott'", "dott"),
        ("TypeError: dot() got an unexpected keyword argument 'precision'", "precision"),
        ("main.cpp:1: error: no member named 'one' in namespace 'kittens'", "one"),
        ("fatal error: 'kitten.cuh' file not found", "kitten.cuh"),
    ],
)
def test_the_name_that_an_error_is_about(message: str, symbol: str) -> None:
    assert symbols_of(build_error(message))[0] == symbol


@pytest.mark.parametrize(
    ("backend", "arch", "titles"),
    [
        ("hipkittens", "gfx942", {"prompts", "examples/hipkittens"}),
        ("triton", "sm_90", {"prompts", "kernels"}),
        ("cpp", None, {"prompts", "torch/include", "kernels"}),
    ],
)
def test_what_a_backends_kernels_are_looked_up_in(backend: str, arch: str | None, titles: set[str]) -> None:
    found = {one.title: one for one in shelves(find_backend(backend), arch, BOOK.folder)}
    assert titles <= set(found)
    assert all(next(found[title].files(), None) is not None for title in titles)
