"""Who is judged once more with more device code in reach, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import evaluate_job

from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.reach import missed, not_own_there, wider, with_reach
from hkbench.profile.ownership import not_own, ownership
from hkbench.records import (
    EvaluationSettings,
    Failure,
    FailureKind,
    Ownership,
    Reach,
    Stage,
    Track,
    Work,
)

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
        (Reach.OWN, "RuntimeError: CUDA NVRTC error:", Reach.SIMPLE),
        (Reach.OWN, "ModuleNotFoundError: No module named 'torch._inductor.codegen.common'", Reach.ALL),
        (Reach.OWN, OTHER, None),
    ],
)
def test_by_what_it_says(code: Path, reach: Reach, message: str, expected: Reach | None) -> None:
    assert wider(reach, failure(message), code) is expected


def test_who_crashes_may_have_called_what_does_nothing(code: Path) -> None:
    assert wider(Reach.OWN, failure("died with SIGSEGV", FailureKind.CRASH), code) is Reach.ALL


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
    assert missed(failure("")) == "runtime_error, "


TRACED = Work(own=1.0, pytorch=0.0, library=0.0, unexplained=0.5, source="kineto")


def job(reach: Reach, message: str | None = None, because: str | None = None, track: Track = Track.OWN) -> EvaluateJob:
    return evaluate_job(
        backend="triton",
        settings=EvaluationSettings(track=track),
        reach=reach,
        missed=None if message is None else failure(message),
        all_because=because,
    )


def test_with_nothing_in_reach_it_is_own_however_much_the_trace_leaves_out() -> None:
    work = with_reach(TRACED, job(Reach.OWN))
    assert work is not None
    assert (work.unexplained, ownership(work)) == (0.0, Ownership.OWN)


def test_who_needs_a_library_is_not_own_whatever_its_trace_says() -> None:
    for traced in (TRACED.model_copy(update={"unexplained": 0.0}), None):
        work = with_reach(traced, job(Reach.ALL, NO_CUBLAS))
        assert work is not None
        assert NO_CUBLAS in (not_own(work) or "")
        assert ownership(work) is Ownership.NOT_OWN


def test_what_it_needs_of_pytorch_s_simple_kernels_leaves_it_open() -> None:
    work = with_reach(TRACED.model_copy(update={"unexplained": 0.0}), job(Reach.SIMPLE, NO_KERNEL))
    assert work is not None
    assert ownership(work) is Ownership.NOT_ESTABLISHED


def test_a_machine_that_cannot_take_libraries_away_refuses_nobody_for_that() -> None:
    work = with_reach(
        TRACED.model_copy(update={"unexplained": 0.0}), job(Reach.ALL, NO_KERNEL, because="there is no mount namespace")
    )
    assert work is not None
    assert ownership(work) is Ownership.NOT_ESTABLISHED


def test_where_nobody_asks_the_trace_is_believed() -> None:
    assert with_reach(TRACED, job(Reach.ALL, because="in track `any`", track=Track.ANY)) is TRACED
    assert with_reach(None, job(Reach.OWN)) is None
