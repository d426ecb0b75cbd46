"""A run folder for the page: code, parents, logs and profiles, written by a model that tries to get out of the text."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, sample_run

from hkbench.records import (
    Failure,
    FailureKind,
    Floor,
    KernelProfile,
    KernelUse,
    Owner,
    SampleKey,
    Stage,
    Verdict,
    Work,
)

SCRIPT = "<script>document.title = 'owned'</script>"
CODE = f'''import torch

SOURCE = r"""
#include <vector>
void run(float* x) {{ x[0] = 1.0f; }}  // {SCRIPT}
"""


class ModelNew(torch.nn.Module):
    note = "</code></pre>{SCRIPT}<img src='http://example.invalid/x.png' onerror='document.title=1'>"
'''


def _write(run: RunFolder, problem: str, attempt: int, sample: int, code: str) -> None:
    run.paths.problem(problem).sample(attempt, sample).code.write_text(code)


def rewrite(run: RunFolder, problem: str, attempt: int, sample: int, verdict: Verdict) -> None:
    run.paths.problem(problem).sample(attempt, sample).result.write_text(verdict.model_dump_json())


def page_run(root: Path) -> RunFolder:
    """`sample_run` with files: 1_ReLU 1.1 has a floor, 1.2 a long log, 2_Sum 2.1 a parent, 3_Softmax 2.1 a profile."""
    run = sample_run(root)
    fast = correct("1_ReLU", 2.0).model_copy(
        update={
            "floor": Floor(seconds=2e-4, bytes=1000, bound="bytes"),
            "work": Work(own=0.9, pytorch=0.1, library=0.0, source="kineto"),
            "output": f"printed {SCRIPT}\x1b[31m",
        }
    )
    rewrite(run, "1_ReLU", 1, 1, fast)
    _write(run, "1_ReLU", 1, 1, CODE)
    detail = "first error\n" + f"note: {SCRIPT} & so on\n" * 400 + "last line\n"
    failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=f"error: {SCRIPT}", detail=detail)
    rewrite(run, "1_ReLU", 1, 2, incorrect("1_ReLU").model_copy(update={"failure": failure}))
    run.prompted("2_Sum", "t", 2, parent=SampleKey(problem="2_Sum", attempt=1, sample=1))
    _write(run, "2_Sum", 1, 1, CODE)
    _write(run, "2_Sum", 2, 1, CODE.replace("1.0f", "2.0f"))
    _write(run, "2_Sum", 2, 2, CODE)
    use = KernelUse(name="void relu<float>()", owner=Owner.CANDIDATE, calls=1, seconds=1e-3, share=1.0)
    profile = KernelProfile(source="a profiler", kernels=(use,), seconds=1e-3, findings=("reads twice",))
    rewrite(run, "3_Softmax", 2, 1, correct("3_Softmax", 0.7).model_copy(update={"profile": profile}))
    return run
