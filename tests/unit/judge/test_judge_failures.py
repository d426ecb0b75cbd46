"""What went wrong, in the words of the tool that failed. The compilers are run for real."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hkbench.judge.failures import (
    DETAIL_LIMIT,
    MESSAGE_LIMIT,
    cut_build_output,
    first_compiler_error,
    from_end,
    from_exception,
)
from hkbench.judge.link import RunnerEnd
from hkbench.records import FailureKind, Stage

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")


def output_of(folder: Path, name: str, source: str, *command: str) -> str:
    """What the failing command writes; `SOURCE` in it stands for the file."""
    path = folder / name
    path.write_text(source)
    words = [str(path) if word == "SOURCE" else word for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env={"PATH": _path(), "LC_ALL": "C"})
    assert done.returncode != 0
    return done.stdout + done.stderr


def _path() -> str:
    return f"{Path(shutil.which('nvcc') or '/usr/bin/nvcc').parent}:/usr/local/bin:/usr/bin:/bin"


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
    first = first_compiler_error(f"[1/2] g++ -c main.cpp -o main.o\nFAILED: main.o\n{output}")
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
    first = first_compiler_error(output_of(tmp_path, "cuda.cu", source, *command))
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
        ("", False),
    ],
)
def test_which_lines_are_errors(line: str, found: bool) -> None:
    assert (first_compiler_error(f"one\n{line}\nlast") is not None) is found


@needs_gcc
def test_a_failed_build_shows_the_place_and_not_the_commands(tmp_path: Path) -> None:
    output = output_of(tmp_path, "main.cpp", "int f() {\n    return nope;\n}\n", "g++", "-c", "SOURCE")
    message = f"Error building extension 'x': [1/2] g++ {'-I/a ' * 900}\nFAILED: [code=1] main.o\n{output}\nninja: stop"
    answer = {"error": "builtins.RuntimeError", "message": message, "traceback": "..."}
    failure = from_exception(Stage.LOAD, answer).failure
    assert (failure.stage, failure.kind) == (Stage.BUILD, FailureKind.BUILD_ERROR)
    assert failure.message == "main.cpp:2:12: error: 'nope' was not declared in this scope"
    assert failure.detail is not None
    assert failure.detail.startswith(f"{tmp_path}/main.cpp: In function 'int f()':")
    assert "return nope;" in failure.detail
    assert "ninja" not in failure.detail and "-I/a" not in failure.detail


def test_a_build_without_a_known_error_line() -> None:
    answer = {"error": "builtins.RuntimeError", "message": "Error building extension 'x':\n\nsomething odd\n"}
    assert from_exception(Stage.LOAD, answer).failure.message == "something odd"


def test_build_output_is_cut() -> None:
    output = "\n".join(f"main.cpp:{number}:1: error: no" for number in range(5000))
    text = cut_build_output(output)
    assert text.startswith("main.cpp:0:1: error: no") and text.endswith("[... cut ...]")
    assert len(text) < DETAIL_LIMIT + 100


@pytest.mark.parametrize(
    ("stage", "name", "message", "kind"),
    [
        (Stage.LOAD, "builtins.ImportError", "no module", FailureKind.LOAD_ERROR),
        (Stage.RUN, "builtins.ValueError", "bad", FailureKind.RUNTIME_ERROR),
        (Stage.RUN, "builtins.SystemExit", "0", FailureKind.RUNTIME_ERROR),
        (Stage.RUN, "builtins.MemoryError", "", FailureKind.OUT_OF_MEMORY),
        (Stage.RUN, "torch.OutOfMemoryError", "CUDA out of memory. Tried to", FailureKind.OUT_OF_MEMORY),
        (Stage.RUN, "builtins.RuntimeError", "DefaultCPUAllocator: can't allocate memory", FailureKind.OUT_OF_MEMORY),
        (Stage.RUN, "builtins.RuntimeError", "std::bad_alloc", FailureKind.OUT_OF_MEMORY),
        (Stage.RUN, "torch.AcceleratorError", "CUDA error: an illegal memory access was", FailureKind.CRASH),
        (Stage.RUN, "builtins.RuntimeError", "HIP error: unspecified launch failure", FailureKind.CRASH),
        (Stage.RUN, "triton.compiler.errors.CompilationError", "at 3:4:\nboom", FailureKind.BUILD_ERROR),
    ],
)
def test_kinds_of_exceptions(stage: Stage, name: str, message: str, kind: FailureKind) -> None:
    failure = from_exception(stage, {"error": name, "message": message, "traceback": "t"}, trial=2).failure
    assert failure.kind is kind


def test_an_exception_s_headline_and_its_own_frames() -> None:
    trace = 'Traceback\n  File "main.py", line 3\n  File "/x/code.py", line 9, in forward\nValueError: bad\n'
    answer = {"error": "builtins.ValueError", "message": "\n\nbad\nmore", "traceback": trace}
    failure = from_exception(Stage.RUN, answer, trial=2).failure
    assert failure.message == "ValueError: bad"
    assert failure.detail is not None and failure.detail.startswith('  File "/x/code.py"')
    assert failure.trial == 2


def test_a_syntax_error_of_a_later_import() -> None:
    answer = {"error": "builtins.SyntaxError", "message": "invalid", "traceback": "", "syntax": True}
    assert from_exception(Stage.LOAD, answer).failure.kind is FailureKind.SYNTAX_ERROR


@pytest.mark.parametrize("answer", [{}, {"error": None, "message": 3, "traceback": []}, {"message": "\ud800" * 9000}])
def test_an_answer_of_any_shape(answer: dict[str, Any]) -> None:
    failure = from_exception(Stage.RUN, answer).failure
    assert failure.kind is FailureKind.RUNTIME_ERROR
    assert len(failure.message) <= MESSAGE_LIMIT
    failure.message.encode()


def end(**fields: Any) -> RunnerEnd:
    whole: dict[str, Any] = {
        "reason": "ended", "signal": None, "exit_code": None, "commands": (), "survivors": 0, "peak_bytes": 0,
        "output": "its last words", "output_bytes": 14,
    }  # fmt: skip
    return RunnerEnd(**(whole | fields))


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"signal": "SIGSEGV"}, FailureKind.CRASH, "SIGSEGV (memory access outside of what is mapped)"),
        ({"signal": "SIGTERM"}, FailureKind.CRASH, "SIGTERM"),
        ({"exit_code": 0}, FailureKind.CRASH, "left with exit code 0 without an answer"),
        ({}, FailureKind.CRASH, "left without an answer"),
        ({"reason": "memory"}, FailureKind.OUT_OF_MEMORY, "more than its 2.0 GiB"),
        ({"reason": "processes"}, FailureKind.LIMIT, "too many processes"),
        ({"reason": "disk"}, FailureKind.LIMIT, "more to its folder"),
        ({"reason": "cpu"}, FailureKind.LIMIT, "more CPU time"),
        ({"reason": "output"}, FailureKind.LIMIT, "printed more"),
    ],
)
def test_ends_without_an_answer(fields: dict[str, Any], kind: FailureKind, text: str) -> None:
    failure = from_end(Stage.RUN, end(**fields), 2 << 30, trial=1).failure
    assert failure.kind is kind
    assert text in failure.message
    assert failure.detail == "its last words"
    assert failure.signal == fields.get("signal")
