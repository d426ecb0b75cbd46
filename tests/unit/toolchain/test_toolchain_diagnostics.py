"""The first error, and names that stay open, in real output of clang and GNU ld."""

from __future__ import annotations

from pathlib import Path

from hkbench.toolchain.diagnostics import first_error, unresolved_symbols

DATA = Path(__file__).parent / "data"


def test_the_first_error_comes_with_its_source_line_and_without_the_next() -> None:
    shown = first_error((DATA / "error_undeclared.txt").read_text())
    assert shown is not None
    assert shown.splitlines()[0] == "cuda_sources:2:23: error: use of undeclared identifier 'b'"
    assert "x[threadIdx.x] *= b;" in shown
    assert "'y'" not in shown
    assert "generated" not in shown


def test_the_include_chain_and_notes_belong_to_the_error() -> None:
    text = (
        "a.hip:1:1: warning: unused\n"
        "In file included from cuda_sources:3:\n"
        "In file included from b.h:1:\n"
        "c.h:9:2: error: bad\n    9 | #error bad\n"
        "d.h:1:1: note: see here\n"
        "e.h:1:1: warning: also\n"
    )
    assert (first_error(text) or "").splitlines() == [
        "In file included from cuda_sources:3:",
        "In file included from b.h:1:",
        "c.h:9:2: error: bad",
        "    9 | #error bad",
        "d.h:1:1: note: see here",
    ]


def test_output_without_an_error_has_none() -> None:
    assert first_error("x.hip:1:1: warning: -Werror: not an error\n") is None


def test_only_names_that_no_rocm_machine_defines_are_reported() -> None:
    names = unresolved_symbols((DATA / "link_unresolved.txt").read_text())
    assert names == ("launch(float*, void*)", "other(T const&)")
