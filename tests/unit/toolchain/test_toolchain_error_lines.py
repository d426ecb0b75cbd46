"""Which line of a build's output is its first error. The compilers are run for real."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compilers import needs_gcc, needs_nvcc, output_of

from hkbench.toolchain.diagnostics import first_error_line, without_commands


@needs_gcc
@pytest.mark.parametrize(
    ("source", "command", "expected"),
    [
        (
            "int f() {\n    return missing_name;\n}\n",
            ("g++", "-c", "SOURCE"),
            "main.cpp:2:12: error: 'missing_name' was not declared in this scope",
        ),
        ('#include "nothere.h"\n', ("g++", "-c", "SOURCE"), "main.cpp:1:10: fatal error: nothere.h: No such file"),
        (
            "template<class T> void g(T t) {\n t.foo(); }\nint main() { g(3); }\n",
            ("g++", "-c", "SOURCE"),
            "main.cpp:2:4: error: request for member 'foo'",
        ),
        (
            "#warning first\nint f() { int unused; return nope; }\n",
            ("g++", "-Wall", "-c", "SOURCE"),
            "main.cpp:2:30: error: 'nope' was not declared",
        ),
        ("int f();\nint main() { return f(); }\n", ("g++", "SOURCE"), "undefined reference to `f()'"),
        ("int f();\n", ("g++", "-shared", "-fPIC", "SOURCE", "-lnotthere"), "ld: cannot find -lnotthere"),
        ("int f();\n", ("g++", "-c", "-march=nonsense", "SOURCE"), "cc1plus: error: bad value 'nonsense'"),
        ("int f();\n", ("g++", "-c", "--nonsense", "SOURCE"), "g++: error: unrecognized command-line option"),
    ],
    ids=["undeclared", "header", "template", "after warnings", "undefined", "library", "march", "flag"],
)
def test_the_first_error_of_gcc(tmp_path: Path, source: str, command: tuple[str, ...], expected: str) -> None:
    output = output_of(tmp_path, "main.cpp", source, *command)
    first = first_error_line(f"[1/2] g++ -c main.cpp -o main.o\nFAILED: main.o\n{output}")
    assert first is not None
    assert expected in first, output
    assert str(tmp_path) not in first


@needs_nvcc
@pytest.mark.parametrize(
    ("source", "command", "expected"),
    [
        (
            "__global__ void k(float* x) {\n    x[0] = missing_name;\n}\n",
            ("nvcc", "-arch=sm_90", "-c", "SOURCE"),
            'cuda.cu(2): error: identifier "missing_name" is undefined',
        ),
        (
            "__global__ void k(float* x) { __shared__ float s[60000]; s[threadIdx.x] = x[0]; __syncthreads();"
            " x[1] = s[3]; }\n",
            ("nvcc", "-arch=sm_90", "-c", "SOURCE"),
            "uses too much shared data",
        ),
        (
            "__device__ float missing(float);\n__global__ void k(float* x) { x[0] = missing(x[1]); }\nint main() {}\n",
            ("nvcc", "-arch=sm_90", "SOURCE"),
            "Unresolved extern function",
        ),
        ("\n", ("nvcc", "-arch=sm_9999", "-c", "SOURCE"), "nvcc fatal   : Unsupported gpu architecture"),
    ],
    ids=["undeclared", "shared memory", "extern", "architecture"],
)
def test_the_first_error_of_nvcc(tmp_path: Path, source: str, command: tuple[str, ...], expected: str) -> None:
    first = first_error_line(output_of(tmp_path, "cuda.cu", source, *command))
    assert first is not None
    assert expected in first


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ld.lld: error: undefined symbol: foo", True),
        ("nvlink error   : Undefined reference to '_Z3foov' in '/tmp/x.o'", True),
        ("/opt/rocm/llvm/bin/ld.lld: error: unable to find library -lx", True),
        ("clang++: error: invalid target ID 'gfx1'", True),
        ("g++: internal compiler error: Segmentation fault signal terminated program cc1plus", True),
        ("main.cpp:9:3: internal compiler error: in tsubst, at cp/pt.cc:16040", True),
        ("ptxas info    : 0 bytes gmem", False),
        ("main.cpp:3:5: warning: unused variable 'error'", False),
        ("main.cpp:3:5: note: error: not this", False),
        ("/usr/bin/g++ -DNAME=error: -c main.cpp", False),
        ("collect2: error: ld returned 1 exit status", True),
        ("error: a message without a place", True),
        ("/usr/bin/ld: a.o: warning: undefined reference to `f()'", False),
        ("", False),
    ],
)
def test_which_lines_are_errors(line: str, found: bool) -> None:
    assert (first_error_line(f"one\n{line}\nlast") is not None) is found


def test_commands_and_ninjas_lines_are_left_out() -> None:
    output = f"[1/2] g++ -c\nFAILED: main.o\ng++ {'-I/a ' * 900}\nsomething odd\nninja: build stopped."
    assert without_commands(output, 100) == "something odd"
    assert without_commands("abc", 2) == "ab\n[... cut ...]"
