"""Which lines of a candidate an error names."""

from __future__ import annotations

from hkbench.report.page.error_lines import error_lines

CODE = 'SOURCE = r"""\nint f(int x) {\n  int z = x;\n  return y;\n}\n"""\nbroken(\n'
GCC = "main.cpp:3:10: error: 'y' was not declared\n    3 |   return y;\n      |          ^\n"
NVCC = '/tmp/b/cuda.cu(9): error: identifier "y" is undefined\n    return y;\n           ^\n'


def test_a_compilers_line_is_found_by_its_text() -> None:
    assert error_lines(CODE, "", GCC) == {4}
    assert error_lines(CODE, "", NVCC) == {4}


def test_only_errors_are_marked() -> None:
    warning = "main.cpp:2:7: warning: unused variable 'z'\n    2 |   int z = x;\n      |       ^\n"
    assert error_lines(CODE, "", warning) == set()
    assert error_lines(CODE, "", warning + GCC) == {4}


def test_python_names_its_lines() -> None:
    assert error_lines(CODE, "line 7: '(' was never closed", "") == {7}
    assert error_lines(CODE, "", 'Traceback\n  File "/x/code.py", line 3, in forward\n') == {3}
    assert error_lines(CODE, "line 70: invalid syntax", "") == set(), "no such line"


def test_what_stands_there_twice_is_not_guessed() -> None:
    assert error_lines(CODE + "  return y;\n", "", GCC) == set()
