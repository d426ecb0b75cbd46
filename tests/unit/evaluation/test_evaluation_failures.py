"""What went wrong, in the words of the tool that failed. The compilers are run for real."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.compilers import needs_gcc, output_of

from hkbench.evaluation import failures
from hkbench.evaluation.failures import DETAIL_LIMIT, MESSAGE_LIMIT, from_end, from_exception
from hkbench.evaluation.runner_end import RunnerEnd
from hkbench.protocol.messages import Raised, raised_by
from hkbench.records import FailureKind, Stage
from hkbench.runner.load import load_file


@needs_gcc
def test_a_failed_build_shows_the_place_and_not_the_commands(tmp_path: Path) -> None:
    output = output_of(tmp_path, "main.cpp", "int f() {\n    return nope;\n}\n", "g++", "-c", "SOURCE")
    message = f"Error building extension 'x': [1/2] g++ {'-I/a ' * 900}\nFAILED: [code=1] main.o\n{output}\nninja: stop"
    answer = {"error": "builtins.RuntimeError", "message": message, "traceback": "..."}
    failure = from_exception(Stage.LOAD, raised_by(answer)).failure
    assert (failure.stage, failure.kind) == (Stage.BUILD, FailureKind.BUILD_ERROR)
    assert failure.message == "main.cpp:2:12: error: 'nope' was not declared in this scope"
    assert failure.detail is not None
    assert failure.detail.startswith("main.cpp: In function 'int f()':")
    assert "return nope;" in failure.detail
    assert "ninja" not in failure.detail and "-I/a" not in failure.detail


def test_a_build_without_a_known_error_line() -> None:
    answer = {"error": "builtins.RuntimeError", "message": "Error building extension 'x':\n\nsomething odd\n"}
    assert from_exception(Stage.LOAD, raised_by(answer)).failure.message == "something odd"


def test_build_output_without_an_error_line_is_cut() -> None:
    output = "\n".join(f"line {number} of a tool" for number in range(5000))
    message = f"Error building extension 'x': [1/2] g++ -c\n{output}"
    failure = from_exception(Stage.LOAD, Raised(error="builtins.RuntimeError", message=message)).failure
    assert failure.detail is not None
    assert failure.detail.endswith("[... cut ...]")
    assert len(failure.detail) < DETAIL_LIMIT + 100


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
    failure = from_exception(stage, Raised(error=name, message=message, traceback="t"), trial=2).failure
    assert failure.kind is kind


def test_an_exception_s_headline_and_its_own_frames() -> None:
    trace = 'Traceback\n  File "main.py", line 3\n  File "/x/code.py", line 9, in forward\nValueError: bad\n'
    answer = {"error": "builtins.ValueError", "message": "\n\nbad\nmore", "traceback": trace}
    failure = from_exception(Stage.RUN, raised_by(answer), trial=2).failure
    assert failure.message == "ValueError: bad"
    assert failure.detail is not None and failure.detail.startswith('  File "code.py", line 9')
    assert failure.trial == 2


def raised(call: Callable[[], object]) -> Raised:
    """An exception as the runner reports it."""
    try:
        call()
    except Exception as error:  # noqa: BLE001
        trace = "".join(traceback.format_exception(error))
        name = f"{type(error).__module__}.{type(error).__name__}"
        return Raised(error=name, message=str(error), traceback=trace)
    raise AssertionError("nothing was raised")


def test_a_traceback_shows_no_frame_of_this_program(tmp_path: Path) -> None:
    """Not before the candidate's frames, nor between them, nor where the candidate has none."""
    (tmp_path / "code.py").write_text(
        "def build():\n    try:\n        import no_such_module\n    except ImportError as error:\n"
        "        raise RuntimeError('no module') from error\n\n\nclass ModelNew:\n    pass\n"
    )
    module = load_file("candidate", str(tmp_path / "code.py"), {})
    failure = from_exception(Stage.LOAD, raised(module.build)).failure
    assert failure.detail is not None
    assert '  File "code.py", line 3, in build' in failure.detail
    assert "import no_such_module" in failure.detail and "RuntimeError: no module" in failure.detail
    assert "hkbench" not in failure.detail and "importlib" not in failure.detail
    (tmp_path / "code.py").write_text("import no_such_module\n")
    failure = from_exception(Stage.LOAD, raised(lambda: load_file("candidate", str(tmp_path / "code.py"), {}))).failure
    assert failure.message == "ModuleNotFoundError: No module named 'no_such_module'"
    assert failure.detail is not None and "runner/load.py" not in failure.detail and "<frozen" not in failure.detail
    assert 'File "code.py", line 1' in failure.detail


def test_an_exception_without_a_frame_of_the_candidates_says_only_what_it_is() -> None:
    path = Path(failures.__file__).parents[1] / "runner" / "main.py"
    trace = (
        f'Traceback (most recent call last):\n  File "{path}", line 9, in construct\n    model = made()\nTypeError: 2\n'
    )
    answer = {"error": "builtins.TypeError", "message": "2", "traceback": trace}
    assert from_exception(Stage.LOAD, raised_by(answer)).failure.detail is None


TRITON = "at 12:8:\n    offs = tl.arange(0, BLOCK)\n    x = tl.fast_exp(offs)\n        ^"


@pytest.mark.parametrize(
    ("message", "trace", "headline"),
    [
        (f"{TRITON}\nAttributeError('no fast_exp')", "", "AttributeError('no fast_exp')"),
        (
            TRITON,
            "Traceback\n  File x\nNameError: BLOCK is not defined\n\nThe above",
            "NameError: BLOCK is not defined",
        ),
    ],
)
def test_triton_says_what_is_wrong_below_its_excerpt(message: str, trace: str, headline: str) -> None:
    answer = {"error": "triton.compiler.errors.CompilationError", "message": message, "traceback": trace}
    failure = from_exception(Stage.RUN, raised_by(answer)).failure
    assert failure.message == headline
    assert failure.detail == message


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            "import torch\n\nclass ModelNew:\n    def f(self, x:\n        return x\n",
            "    4 |     def f(self, x:\n      |          ^",
        ),
        ("ModelNew = 1\nfoo bar\n", "    1 | ModelNew = 1\n    2 | foo bar\n      |     ^^^"),
    ],
)
def test_a_syntax_error_shows_its_line(source: str, shown: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        compile(source, "code.py", "exec")
    assert shown in (failures.shown_syntax_error(caught.value, source.encode()) or "")


def test_a_syntax_error_of_a_later_import() -> None:
    answer = {"error": "builtins.SyntaxError", "message": "invalid", "traceback": "", "syntax": True}
    assert from_exception(Stage.LOAD, raised_by(answer)).failure.kind is FailureKind.SYNTAX_ERROR


@pytest.mark.parametrize("answer", [{}, {"error": None, "message": 3, "traceback": []}, {"message": "\ud800" * 9000}])
def test_an_answer_of_any_shape(answer: dict[str, Any]) -> None:
    failure = from_exception(Stage.RUN, raised_by(answer)).failure
    assert failure.kind is FailureKind.RUNTIME_ERROR
    assert len(failure.message) <= MESSAGE_LIMIT
    failure.message.encode()


def end(**fields: Any) -> RunnerEnd:
    whole: dict[str, Any] = {
        "reason": "ended", "signal": None, "exit_code": None, "commands": (), "survivors": 0, "peak_bytes": 0,
        "output": "its last words",
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
    failure = from_end(Stage.RUN, end(**fields), 2 << 30).failure
    assert failure.kind is kind
    assert text in failure.message
    assert failure.detail == "its last words"
    assert failure.signal == fields.get("signal")
