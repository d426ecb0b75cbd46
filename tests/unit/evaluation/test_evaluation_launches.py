"""What the evaluator makes of a runner's word on its launches: nothing in it is believed to be well formed."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from support.jobs import evaluate_job
from support.small_problems import LINEAR, problem_file

from hkbench.evaluation.failures import CandidateFailed
from hkbench.evaluation.frames import LaunchesCompiled
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.launches import NOTHING_LAUNCHED, TOTAL_LIMIT, absent_gpu, launched
from hkbench.evaluation.link import ProtocolError
from hkbench.protocol.messages import Part, Request, written
from hkbench.records import DeviceKind, FailureKind, Stage

KERNEL = {"name": "k", "bytes": 5}
REFUSED = {"name": "k", "error": "CompilationError", "line": 7, "message": "at 2:4:\ndef k():\n    x\n    ^\nboom"}
RAISED = {"error": "builtins.RuntimeError", "message": "no contents", "traceback": ""}


class Runner:
    """Answers `launch` with what a test gives, and `part` from `image`, two bytes at a time."""

    def __init__(self, image: bytes = b"12345", **answer: Any) -> None:
        self.image = image
        self.asked: dict[str, Any] = {}
        self.answer = {"ok": True, "stage": "run", "raised": None, "kernels": [], "refused": [], "idle": []} | answer

    def request(self, request: Request[object], _seconds: float, *_: Any) -> dict[str, Any]:
        if not isinstance(request, Part):
            self.asked = written(request)
            return self.answer
        return {"ok": True, "part": base64.b64encode(self.image[request.offset :][:2]).decode()}


@pytest.fixture
def job(tmp_path: Path) -> EvaluateJob:
    return evaluate_job(
        problem=problem_file(tmp_path, LINEAR), folder=str(tmp_path), backend="triton", device=DeviceKind.CPU,
        build_only="launch", arch="gfx950",
    )  # fmt: skip


def ask(job: EvaluateJob, runner: Runner) -> LaunchesCompiled:
    return launched(runner, job, lambda: None)  # type: ignore[arg-type]


def failure(job: EvaluateJob, **answer: Any) -> tuple[Stage, FailureKind, str]:
    with pytest.raises(CandidateFailed) as caught:
        ask(job, Runner(**answer))
    return caught.value.failure.stage, caught.value.failure.kind, caught.value.failure.message


def test_inputs_go_as_shapes_and_code_objects_come_back_whole(job: EvaluateJob) -> None:
    runner = Runner(kernels=[dict(KERNEL)], idle=["other"])
    found = ask(job, runner)
    assert [base64.b64decode(str(kernel["image"])) for kernel in found.kernels] == [b"12345"]
    assert found.notes == ["other is not launched by forward, so it was not compiled"]
    assert runner.asked["inputs"][0]["tensor"]["shape"] == [8, 12]
    assert runner.asked["init_inputs"] == [{"value": 12}, {"value": 5}]


def test_the_gpu_is_a_listed_part() -> None:
    found = absent_gpu("gfx942")
    assert (found.name, found.arch, found.compute_units) == ("AMD Instinct MI300X", "gfx942", 304)
    assert found.lds == 65536 < found.memory


def test_nothing_launched_is_not_compiled(job: EvaluateJob) -> None:
    assert failure(job) == (Stage.BUILD, FailureKind.BUILD_ERROR, NOTHING_LAUNCHED)


def test_what_triton_refused_counts_even_when_forward_went_on(job: EvaluateJob) -> None:
    expected = (Stage.BUILD, FailureKind.BUILD_ERROR, "line 7: error: boom")
    assert failure(job, refused=[REFUSED]) == expected
    assert failure(job, refused=[REFUSED], kernels=[dict(KERNEL)]) == expected
    later = REFUSED | {"line": None, "message": "PassManager::run failed"}
    assert failure(job, refused=[later])[2] == "k: error: PassManager::run failed"


def test_a_failed_static_assertion_of_one_configuration_is_a_note(job: EvaluateJob) -> None:
    passed_over = REFUSED | {"error": "CompileTimeAssertionFailure"}
    found = ask(job, Runner(kernels=[dict(KERNEL)], refused=[passed_over]))
    assert found.notes == ["a configuration of k does not compile: boom"]
    assert failure(job, refused=[passed_over])[2] == "line 7: error: boom"


def test_an_early_end_is_a_note_when_something_was_compiled(job: EvaluateJob) -> None:
    (note,) = ask(job, Runner(kernels=[dict(KERNEL)], raised=RAISED)).notes
    assert note.startswith("forward ended early") and "RuntimeError: no contents" in note
    assert failure(job, raised=RAISED)[:2] == (Stage.RUN, FailureKind.RUNTIME_ERROR)
    assert failure(job, raised=RAISED, stage="load")[:2] == (Stage.LOAD, FailureKind.LOAD_ERROR)


def test_a_kernel_that_the_gpu_cannot_hold_does_not_count_as_compiled(job: EvaluateJob) -> None:
    raised = {"error": "triton.runtime.errors.OutOfResources", "message": "out of resource: shared memory"}
    stage, kind, message = failure(job, raised=raised, kernels=[{"name": "k", "bytes": 0}])
    assert (stage, kind) == (Stage.BUILD, FailureKind.BUILD_ERROR) and message.startswith("k compiles, but cannot")


@pytest.mark.parametrize(
    "answer",
    [
        {"kernels": None},
        {"kernels": ["k"]},
        {"refused": [1]},
        {"idle": [{}]},
        {"kernels": [dict(KERNEL)] * 300},
        {"kernels": [KERNEL | {"bytes": TOTAL_LIMIT + 1}]},
        {"kernels": [KERNEL | {"bytes": "5"}]},
        {"kernels": [KERNEL | {"bytes": -5}]},
        {"kernels": [KERNEL | {"bytes": 9}]},
        {"kernels": [KERNEL], "image": b""},
    ],
)
def test_what_a_runner_never_says(job: EvaluateJob, answer: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        ask(job, Runner(**answer))
