"""`run_batch.py --build-only` as a user runs it without an AMD GPU: compiled by the real hipcc, and not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import doors
from support.compilers import empty_module, hip_or_skip
from support.kittens_candidate import SCALE_ROWS
from support.strategy_examples import EXAMPLES, Row, rows

from hkbench.errors import InputMissing, RunMismatch, ToolchainUnavailable, UsageError
from hkbench.records import AdviceReceived, Decided, FailureKind, ProblemClosed, QuestionKind, VerdictReached
from hkbench.store.layout import RunPaths

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]

CANDIDATE = '''
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

HIP = r"""
#include <hip/hip_runtime.h>
__global__ __launch_bounds__(256) void twice(float *x) { x[blockIdx.x * 256 + threadIdx.x] *= FACTOR; }
void launch(float *x) { twice<<<1, 256>>>(x); }
"""
BINDING = """
EMPTY_MODULE"""
extension = load_inline(name="twice", cpp_sources=BINDING, cuda_sources=HIP, no_implicit_headers=True)


class ModelNew(nn.Module):
    pass
'''.replace("EMPTY_MODULE", empty_module("twice"))
KITTENS = (
    SCALE_ROWS
    + """

class ModelNew(nn.Module):
    pass
"""
)
STAND_IN = doors.ROOT / "tests" / "support" / "kittens_stand_in"
COMPILES, REFUSED = CANDIDATE.replace("FACTOR", "2.0f"), CANDIDATE.replace("FACTOR", "no_such_name")
MENDED, PLAIN = "1_Loop", "2_Loop"
SWIGLU = "2_SwiGLU_fp32"


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    hip_or_skip("a batch with --build-only was not tested")


def reply(folder: Path, name: str, attempt: int, code: str) -> None:
    path = folder / name / f"attempt_{attempt}" / "sample_1" / "response.txt"
    path.parent.mkdir(parents=True)
    path.write_text(f"```python\n{code}```\n")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Two problems: one whose first reply does not compile, one whose first reply does."""
    folder = tmp_path_factory.mktemp("unmeasured")
    for number, name in enumerate((MENDED, PLAIN), start=1):
        doors.problem(folder / "problems", name, number)
    reply(folder / "replies", MENDED, 1, REFUSED)
    reply(folder / "replies", MENDED, 2, COMPILES)
    reply(folder / "replies", PLAIN, 1, COMPILES)
    given = [
        "1",
        "2",
        "--build-only",
        "--keep-assembly",
        "--problems",
        folder / "problems",
        "--replay",
        folder / "replies",
    ]
    return [*given, "--results", folder / "results"]


@pytest.fixture(scope="module")
def results(words: list[object]) -> Path:
    """The run folder of reflect for the default architecture."""
    done = doors.call("run_batch", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{MENDED}: compiled, not measured" in done.stdout
    return Path(str(words[-1]))


def loaded(path: Path) -> Any:
    return json.loads(path.read_text())


def test_verdicts_say_compiled_and_what_was_not_looked_at(results: Path) -> None:
    found = {
        (one.key.problem, one.key.attempt): (one.status, one.kind)
        for one in doors.events(results)
        if isinstance(one, VerdictReached)
    }
    assert found == {
        (MENDED, 1): ("incorrect", FailureKind.BUILD_ERROR),
        (MENDED, 2): ("compiled", None),
        (PLAIN, 1): ("compiled", None),  # and no attempt after it: no verdict of this run says more
    }
    verdict = loaded(results / PLAIN / "attempt_1" / "sample_1" / "result.json")
    assert (verdict["conditions"]["device"], verdict["conditions"]["arch"]) == ("rocm", "gfx942")
    assert verdict["conditions"]["device_name"] == "no device (compiled for gfx942)"
    assert "never run" in verdict["conditions"]["not_checked"][0]
    assert (verdict["speedup"], verdict["trials"]) == (None, [])
    assert [(kernel["name"], kernel["vgpr_spills"]) for kernel in verdict["resources"]] == [("twice(float*)", 0)]
    closed = [one for one in doors.events(results) if isinstance(one, ProblemClosed)]
    assert [(one.solved, one.compiled, one.speedup) for one in closed] == [(False, True, None)] * 2


def test_the_machine_code_is_kept_where_there_is_some(results: Path) -> None:
    samples = RunPaths(results).problem(MENDED)
    assert not samples.sample(1, 1).assembly.exists(), "it did not compile"
    for sample in (samples.sample(2, 1), RunPaths(results).problem(PLAIN).sample(1, 1)):
        text = sample.assembly.read_text()
        assert text.startswith("# twice.so\n") and "s_endpgm" in text and text.count("# ") == 1


def test_prompts_are_for_the_gpu_that_is_not_there(results: Path) -> None:
    paths = RunPaths(results).problem(MENDED)
    first, second = (paths.root / f"prompt_{attempt}.txt" for attempt in (1, 2))
    assert "AMD Instinct MI300X (gfx942), 206.2 GB of memory, 5300 GB/s, 304 compute units" in first.read_text()
    assert "64 KiB of LDS a compute unit" in first.read_text()
    assert "no_such_name" in second.read_text()  # the compiler's words


def test_reports_say_what_compiled_and_that_nothing_was_measured(results: Path) -> None:
    overall = loaded(results / "detailed_report.json")["overall"]
    assert (overall["compiled"], overall["samples_compiled"], overall["judged"], overall["fast_p"]) == (2, 2, 0, None)
    assert [found["value"] for found in overall["pass_at_k"]] == [None]
    text = (results / "detailed_report.txt").read_text()
    assert "2 of 2 problems with a kernel that compiles for gfx942" in text
    assert "Solved" not in text.split("Without the weak problems")[0]
    assert "2 of 2 problems with a kernel that compiles for gfx942" in (results / "report.html").read_text()
    assert "nothing is measured" in doors.call("monitor", results, "--once").stdout
    assert "nothing was measured" in doors.hkbench("show", results).stdout
    assert "compiled, not measured" in doors.hkbench("show", results, PLAIN).stdout


def test_the_same_command_resumes_and_another_target_is_refused(results: Path, words: list[object]) -> None:
    before = len([one for one in doors.events(results) if isinstance(one, VerdictReached)])
    assert doors.call("run_batch", *words).returncode == 0
    assert len([one for one in doors.events(results) if isinstance(one, VerdictReached)]) == before
    other = doors.call("run_batch", *words, "--arch", "gfx950")
    assert other.returncode == RunMismatch.exit_code
    assert "compiled_for gfx942 -> gfx950" in other.stderr
    measured = doors.call(
        "run_batch", *(word for word in words if word != "--build-only"), "--device", "cpu", "--backend", "cpp"
    )
    assert measured.returncode == RunMismatch.exit_code
    assert "compiled_for gfx942 -> not set" in measured.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--build-only", "--backend", "cpp"), "leave out --build-only"),
        (("--build-only", "--device", "cpu"), "leave out --device cpu"),
        (("--build-only", "--arch", "gfx90a"), "gfx942, gfx950"),
        (("--arch", "gfx942"), "--arch goes with --build-only"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[object], tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    plain = [*(word for word in words[:-1] if word != "--build-only"), tmp_path / "results"]
    done = doors.call("run_batch", *plain, *given)
    assert done.returncode == UsageError.exit_code
    assert said in done.stderr


def test_hipkittens_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    """Against a small tree laid out like HipKittens' (tests/support/kittens_stand_in)."""
    doors.problem(tmp_path / "problems", PLAIN, 2)
    reply(tmp_path / "replies", PLAIN, 1, KITTENS)
    given = ["--build-only", "--arch", "gfx950", "--backend", "hipkittens", "--problems", tmp_path / "problems"]
    given += ["--replay", tmp_path / "replies", "--results", tmp_path / "results"]
    absent = doors.call("run_batch", *given, env={"HIPKITTENS_ROOT": str(tmp_path / "nowhere")})
    assert absent.returncode in (InputMissing.exit_code, ToolchainUnavailable.exit_code)
    assert not (tmp_path / "results").exists()
    done = doors.call("run_batch", *given, env={"HIPKITTENS_ROOT": str(STAND_IN)})
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = loaded(tmp_path / "results" / PLAIN / "attempt_1" / "sample_1" / "result.json")
    assert (verdict["status"], verdict["language"]["backend"]) == ("compiled", "hipkittens")
    assert verdict["conditions"]["arch"] == "gfx950"


def labelled(row: Row) -> tuple[int, str]:
    return row.attempt, row.label


def reached(folder: Path) -> list[tuple[int, str]]:
    found = [one for one in doors.events(folder) if isinstance(one, VerdictReached)]
    return [(one.key.attempt, one.kind or one.status) for one in found]


def run_strategy(folder: Path, strategy: str, *more: object) -> Path:
    replies = EXAMPLES / f"{strategy}.toml"
    given = ["2", "2", "--build-only", "--strategy", strategy, "--replay", replies, "--results", folder / "results"]
    done = doors.call("run_batch", *given, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "results"


def test_a_judge_is_asked_to_optimise_by_what_the_compiler_says(tmp_path: Path) -> None:
    folder = run_strategy(tmp_path, "judge", "--rounds", "2")
    assert reached(folder) == [labelled(row) for row in rows("judge", "hip") if not row.judge]
    asked = [one.kind for one in doors.events(folder) if isinstance(one, AdviceReceived)]
    assert asked == [QuestionKind.REPAIR, QuestionKind.OPTIMISE]
    question = (folder / SWIGLU / "attempt_3" / "judge_1" / "prompt.txt").read_text()
    assert "that compiles for gfx942. Nothing was run" in question
    assert "bytes of scratch memory a lane" in question
    assert "Speed-up" not in question
    assert "The bottleneck: kept has 64 elements" in (folder / SWIGLU / "prompt_3.txt").read_text()
    best = loaded(folder / SWIGLU / "best_result.json")
    assert [kernel["findings"] for kernel in best["resources"]] == [[]]


def test_stages_go_on_without_scores_and_say_so(tmp_path: Path) -> None:
    folder = run_strategy(tmp_path, "staged", "--arch", "gfx950")
    assert reached(folder) == [labelled(row) for row in rows("staged", "hip")]
    decided = [(one.what, one.choice) for one in doors.events(folder) if isinstance(one, Decided)]
    assert decided == [
        ("category", "fusion-memory"),
        ("rules", "without scores"),
        ("stage", "one-pass"),
        ("stage", "access"),
        ("skip", "reductions"),
    ]
    access = (folder / SWIGLU / "prompt_4.txt").read_text()
    assert "AMD Instinct MI355X (gfx950)" in access
    assert "160 KiB of LDS a compute unit" in access
    assert "## Your attempt 2" in access  # attempt 3 has more findings
