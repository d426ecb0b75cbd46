"""Who is judged once more with more device code in reach, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.evaluation.reach import Reach, missed, not_own_there, wider
from hkbench.records import Failure, FailureKind, Stage

NO_KERNEL = "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"
NO_CUBLAS = "RuntimeError: CUDA error: <unknown> when calling `cublasCreate(handle)`"
OTHER = "RuntimeError: shapes do not fit"


def failure(message: str, kind: FailureKind = FailureKind.RUNTIME_ERROR, detail: str | None = None) -> Failure:
    return Failure(stage=Stage.RUN, kind=kind, message=message, detail=detail)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "candidate.py"
    path.write_text("class ModelNew: ...")
    return path


@pytest.mark.parametrize(
    ("reach", "message", "expected"),
    [
        (Reach.OWN, NO_KERNEL, Reach.SIMPLE),
        (Reach.SIMPLE, NO_KERNEL, Reach.ALL),
        (Reach.ALL, NO_KERNEL, None),
        (Reach.OWN, NO_CUBLAS, Reach.ALL),
        (Reach.SIMPLE, NO_CUBLAS, Reach.ALL),
        (Reach.OWN, OTHER, None),
    ],
)
def test_by_what_it_says(code: Path, reach: Reach, message: str, expected: Reach | None) -> None:
    assert wider(reach, failure(message), code) is expected


def test_by_what_the_compiler_says(code: Path) -> None:
    lacking = failure("the build failed", FailureKind.BUILD_ERROR, "undefined reference to `cublasCreate_v2'")
    assert wider(Reach.OWN, lacking, code) is Reach.ALL


def test_wrong_values_of_who_calls_a_library_and_does_not_look_whether_it_worked(code: Path) -> None:
    wrong = failure("output[0]: expected 1, got nan", FailureKind.WRONG_VALUES)
    assert wider(Reach.OWN, wrong, code) is None
    code.write_text("library = ctypes.CDLL('libcublas.so.13')")
    assert wider(Reach.OWN, wrong, code) is Reach.ALL


def test_who_does_not_fail_is_judged_once(code: Path) -> None:
    code.write_text("# not cuBLAS")
    assert wider(Reach.OWN, None, code) is None


def test_at_another_shape_it_is_not_own() -> None:
    lacking = failure(NO_KERNEL)
    assert not_own_there(lacking, Reach.OWN).kind is FailureKind.NOT_OWN
    assert not_own_there(lacking, Reach.ALL) is lacking
    assert not_own_there(failure(OTHER), Reach.OWN).kind is FailureKind.RUNTIME_ERROR


def test_what_it_missed_is_said_by_its_first_line() -> None:
    said = missed(failure(f"{NO_CUBLAS}\nand more"))
    assert NO_CUBLAS in said
    assert "more" not in said
