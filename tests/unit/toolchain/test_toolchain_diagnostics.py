"""The first error, and names that stay open, in real output of clang, g++ and GNU ld."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hkbench.toolchain.diagnostics import SHOWN_LINES, errors, first_error, unresolved_symbols

DATA = Path(__file__).parent / "data"


def test_the_first_error_comes_with_its_source_line_and_without_the_next() -> None:
    shown = first_error((DATA / "error_undeclared.txt").read_text())
    assert shown is not None
    assert shown.splitlines()[0] == "cuda_sources:2:23: error: use of undeclared identifier 'b'"
    assert "x[threadIdx.x] *= b;" in shown
    assert "'y'" not in shown
    assert "generated" not in shown


def test_of_the_include_chain_the_candidates_line_is_kept() -> None:
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
        "c.h:9:2: error: bad",
        "    9 | #error bad",
        "d.h:1:1: note: see here",
    ]


def test_gccs_include_chain_leads_to_the_candidate_too() -> None:
    text = "In file included from b.h:1,\n                 from main.cpp:3:\nc.h:9:2: error: #error bad\n"
    assert (first_error(text) or "").splitlines() == ["In file included from main.cpp:3:", "c.h:9:2: error: #error bad"]


def test_of_the_instantiations_the_candidates_innermost_line_is_kept() -> None:
    shown = first_error((DATA / "error_template_chain.txt").read_text())
    assert shown is not None
    lines = shown.splitlines()
    assert "The mask must be a 64-bit integer" in lines[0]
    assert [line for line in lines if "requested here" in line] == [
        "cuda_sources:4:12: note: in instantiation of function template specialization "
        "'__shfl_xor_sync<unsigned int, float>' requested here"
    ]
    assert "    4 |     return __shfl_xor_sync(0xffffffffu, x, 16);" in lines
    assert lines[-1].endswith("note: expression evaluates to '4 == 8'")
    assert "In file included from" not in shown


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_of_gccs_instantiations_too(tmp_path: Path) -> None:
    source = tmp_path / "main.cpp"
    source.write_text(
        "#include <algorithm>\n#include <vector>\nstruct row { float sum; };\n"
        "template <class T> void order(std::vector<T>& x) {\n    std::sort(x.begin(), x.end());\n}\n"
        "void forward(std::vector<row>& x) { order(x); }\n"
    )
    command = ["c++", "-std=c++20", "-fsyntax-only", "main.cpp"]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert len(done.stderr.splitlines()) > 40
    shown = first_error(done.stderr)
    assert shown is not None
    assert len(shown.splitlines()) <= SHOWN_LINES
    assert "main.cpp:5:14:   required from 'void order(std::vector<T>&) [with T = row]'" in shown
    assert "no match for 'operator<'" in shown
    assert "main.cpp:7" not in shown


def test_a_long_name_is_cut_in_its_middle() -> None:
    shown = first_error(f"a.hip:1:1: error: no matching function for call to 'f<{'int, ' * 500}last>'\n")
    assert shown is not None
    assert len(shown) <= 420
    assert shown.startswith("a.hip:1:1: error: no matching")
    assert shown.endswith("last>'")


def test_notes_that_say_nothing_are_left_out() -> None:
    text = (
        "a.hip:1:1: error: no matching function for call to 'f'\n"
        "b.h:1:1: note: candidate template ignored: couldn't infer template argument 'N'\n"
        "b.h:2:1: note: candidate function not viable: no known conversion from 'int *' to 'float *'\n"
    )
    assert "couldn't infer" not in (first_error(text) or "")
    assert "no known conversion" in (first_error(text) or "")
    only = "\n".join(text.splitlines()[:2])
    assert "couldn't infer" in (first_error(only) or "")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('[1/2] nvcc -c cuda.cu\ncuda.cu(2): error: identifier "n" is undefined\n      x[0] = n;\n             ^\n\n'
         '1 error detected in the compilation of "cuda.cu".\n',
         'cuda.cu(2): error: identifier "n" is undefined\n      x[0] = n;\n             ^'),
        ("ptxas info    : 0 bytes gmem\nptxas error   : Entry function '_Z1kPf' uses too much shared data\n",
         "ptxas error   : Entry function '_Z1kPf' uses too much shared data"),
        ("main.cpp: In function 'int f()':\nmain.cpp:2:12: error: 'n' was not declared in this scope\n",
         "main.cpp: In function 'int f()':\nmain.cpp:2:12: error: 'n' was not declared in this scope"),
        ("/usr/bin/ld: a.o: in function `f()':\na.cpp:(.text+0x5): undefined reference to `g()'\n"
         "collect2: error: ld returned 1 exit status\n",
         "a.cpp:(.text+0x5): undefined reference to `g()'"),
        ("/usr/bin/ld: cannot find -lx: No such file or directory\n",
         "/usr/bin/ld: cannot find -lx: No such file or directory"),
    ],
)  # fmt: skip
def test_other_tools_speak_too(text: str, first: str) -> None:
    assert first_error(text) == first


def test_all_errors_come_in_order() -> None:
    text = "a.hip:1:1: error: one\n    1 | x\na.hip:2:1: error: two\n2 errors generated when compiling for gfx942.\n"
    assert list(errors(text)) == ["a.hip:1:1: error: one\n    1 | x", "a.hip:2:1: error: two"]


def test_output_without_an_error_has_none() -> None:
    assert first_error("x.hip:1:1: warning: -Werror: not an error\n") is None


def test_only_names_that_no_rocm_machine_defines_are_reported() -> None:
    names = unresolved_symbols((DATA / "link_unresolved.txt").read_text())
    assert names == ("launch(float*, void*)", "other(T const&)")
