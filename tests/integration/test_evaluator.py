"""The real evaluator, its fork servers and its judge, on candidates that need no compiler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from support.processes import left_behind, living
from support.small_problems import AFFINE, LINEAR, TOP, candidate_file, forward, problem_file

from hkbench.engine import evaluator as evaluator_module
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.errors import DeviceUnavailable, ProblemError, WorkerLost
from hkbench.records import (
    DeviceKind,
    EvaluationSettings,
    FailureKind,
    Problem,
    SizeSet,
    Stage,
    Status,
    Track,
    Verdict,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    shapes=0,
    track=Track.ANY,
    trials=2,
    timing_runs=5,
    timing_seconds=5.0,
    warmups=1,
    build_timeout=60.0,
    load_timeout=20.0,
    run_timeout=20.0,
    memory_gib=1.5,
)
SHORT = SETTINGS.model_copy(update={"load_timeout": 3.0, "run_timeout": 2.0})
RIGHT = forward("return 2.0 * x + 1.0")


@dataclass(frozen=True)
class Bench:
    """The evaluator of this module, with a folder of its own for each evaluation."""

    evaluator: LocalEvaluator

    async def judge(self, problem: Problem, source: str, folder: Path) -> Verdict:
        code = candidate_file(folder, source)
        build = folder / "build"
        result = await self.evaluator.evaluate(problem, code, build, "cpp")
        assert result.verdict is not None
        assert not build.exists()
        return result.verdict


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench() -> AsyncIterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM_GATEWAY_KEY", "secret-of-the-user")
        async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
            yield Bench(evaluator)
    assert left_behind() == {}


ROUNDS = (5, 10, 15)  #: timed runs go on, round by round, while it is not settled which side is faster


@pytest.fixture
def affine(tmp_path: Path) -> Problem:
    return problem_file(tmp_path / "problems", AFFINE)


async def test_a_correct_candidate(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    verdict = await bench.judge(affine, RIGHT, tmp_path)
    assert verdict.status in (Status.FAST, Status.SLOW)
    assert len(verdict.trials) == 2
    assert all(trial.max_error_over_tolerance is not None for trial in verdict.trials)
    assert verdict.candidate is not None and len(verdict.candidate.samples) in ROUNDS
    assert verdict.baseline is not None and len(verdict.baseline.samples) == len(verdict.candidate.samples)
    assert verdict.conditions.reference_precision == "float64"
    assert verdict.conditions.seeds[0] != verdict.conditions.seeds[1]
    assert (verdict.profile is not None) == (verdict.status is Status.SLOW)
    assert [entry.stage for entry in verdict.stages] == [Stage.PARSE, Stage.LOAD, Stage.RUN, Stage.TIME]


async def test_the_stages_are_announced(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    """With the device, once it is lent."""
    seen: list[tuple[Stage, int | None]] = []
    code = candidate_file(tmp_path, RIGHT)
    await bench.evaluator.evaluate(affine, code, tmp_path / "build", "cpp", lambda *told: seen.append(told))
    assert seen[:2] == [(Stage.PARSE, None), (Stage.LOAD, None)]
    assert seen[2:] == [(Stage.LOAD, 0), (Stage.RUN, 0), (Stage.TIME, 0)]


FAILURES = {
    "values": (forward("return 2.0 * x + 1.01"), Stage.COMPARE, FailureKind.WRONG_VALUES, "expected"),
    "shape": (forward("return (2.0 * x + 1.0)[:, :-1]"), Stage.COMPARE, FailureKind.WRONG_SHAPE, "[16, 24]"),
    "dtype": (forward("return (2.0 * x + 1.0).double()"), Stage.COMPARE, FailureKind.WRONG_DTYPE, "float64"),
    "structure": (forward("return [2.0 * x + 1.0, x]"), Stage.COMPARE, FailureKind.WRONG_TYPE, "output[0]"),
    "a one-element list": (forward("return [2.0 * x + 1.0]"), Stage.COMPARE, FailureKind.WRONG_TYPE, "output[0]"),
    "nothing": (forward("pass"), Stage.COMPARE, FailureKind.WRONG_TYPE, "NoneType"),
    "nan": (
        forward("y = 2.0 * x + 1.0\ny[3, 4] = float('nan')\nreturn y"),
        Stage.COMPARE,
        FailureKind.NOT_FINITE,
        "[3, 4]",
    ),
    "unwritten": (
        forward("y = 2.0 * x + 1.0\ny[5:] = torch.empty_like(y)[5:] * 0 + 77\nreturn y"),
        Stage.COMPARE,
        FailureKind.WRONG_VALUES,
        "of 384 elements",
    ),
    "input": (forward("return x.mul_(2.0).add(1.0)"), Stage.COMPARE, FailureKind.INPUT_MODIFIED, "input 0"),
    "exception": (forward("raise RuntimeError('no luck')"), Stage.RUN, FailureKind.RUNTIME_ERROR, "no luck"),
    "surrogates": (forward("raise RuntimeError('\\ud800 odd')"), Stage.RUN, FailureKind.RUNTIME_ERROR, "odd"),
    "a huge message": (forward("raise RuntimeError('x' * 50_000_000)"), Stage.RUN, FailureKind.RUNTIME_ERROR, "xxx"),
    "import": (
        "raise ValueError('at import')\nclass ModelNew: pass\n",
        Stage.LOAD,
        FailureKind.LOAD_ERROR,
        "at import",
    ),
    "constructor": (
        "class ModelNew(nn.Module):\n    def __init__(self):\n        raise OSError('in init')\n",
        Stage.LOAD,
        FailureKind.LOAD_ERROR,
        "in init",
    ),
    "not a class": ("ModelNew = 3\n", Stage.LOAD, FailureKind.NO_MODEL_NEW, "ModelNew"),
    "no class": ("class Model: pass\n", Stage.PARSE, FailureKind.NO_MODEL_NEW, "ModelNew"),
    "a large file": (RIGHT + "#" * 15_000_000, Stage.PARSE, FailureKind.LIMIT, "600000 bytes"),
    "a nested file": (f"{RIGHT}x = {'-' * 100_000}1\n", Stage.PARSE, FailureKind.SYNTAX_ERROR, "nested"),
    "syntax": ("class ModelNew(:\n", Stage.PARSE, FailureKind.SYNTAX_ERROR, "line 5"),
    "exit at import": ("class ModelNew: pass\nsys.exit(0)\n", Stage.LOAD, FailureKind.LOAD_ERROR, "SystemExit"),
    "exit in forward": (forward("sys.exit(0)"), Stage.RUN, FailureKind.RUNTIME_ERROR, "SystemExit"),
    "leaving": (forward("os._exit(0)"), Stage.RUN, FailureKind.CRASH, "exit code 0"),
    "segfault": (
        forward("ctypes.string_at(0)", before="import ctypes"),
        Stage.RUN,
        FailureKind.CRASH,
        "SIGSEGV",
    ),
    "abort at import": ("class ModelNew: pass\nos.abort()\n", Stage.LOAD, FailureKind.CRASH, "SIGABRT"),
    "a child that stays": (
        forward("if os.fork() == 0:\n    while True: pass\nos._exit(0)"),
        Stage.RUN,
        FailureKind.CRASH,
        "exit code 0",
    ),
    "subclass": (
        forward("return (2.0 * x + 1.0).as_subclass(Odd)", before="class Odd(torch.Tensor): pass"),
        Stage.COMPARE,
        FailureKind.WRONG_TYPE,
        "Odd",
    ),
    "expanded": (forward("return (2.0 * x + 1.0)[:, :1].expand(16, 24)"), Stage.COMPARE, FailureKind.WRONG_STRIDES, ""),
    "prints a verdict": (
        forward('print(\'PASS\')\nprint(\'{"status": "fast", "speedup": 100}\')\nreturn x.clone()'),
        Stage.COMPARE,
        FailureKind.WRONG_VALUES,
        "expected",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failing_candidate(name: str, bench: Bench, affine: Problem, tmp_path: Path) -> None:
    source, stage, kind, text = FAILURES[name]
    verdict = await bench.judge(affine, source, tmp_path)
    assert verdict.status is Status.INCORRECT
    assert verdict.failure is not None
    assert (verdict.failure.stage, verdict.failure.kind) == (stage, kind), verdict.failure
    assert text in verdict.failure.message
    assert len(verdict.failure.message) < 5000


LOOPS = {
    "import": ("class ModelNew: pass\nwhile True: pass\n", Stage.LOAD),
    "forward": (forward("while True: pass"), Stage.RUN),
}


@pytest.mark.parametrize("place", LOOPS)
async def test_an_endless_loop(place: str, affine: Problem, tmp_path: Path) -> None:
    source, stage = LOOPS[place]
    before = set(living())
    async with LocalEvaluator(DeviceKind.CPU, SHORT) as evaluator:
        verdict = await Bench(evaluator).judge(affine, source, tmp_path)
    assert verdict.failure is not None
    assert (verdict.failure.stage, verdict.failure.kind) == (stage, FailureKind.TIMEOUT)
    assert await _nobody_but(before)


async def _nobody_but(before: set[int]) -> bool:
    """Whether only these processes are left below this one, after some time for the last to end."""
    for _ in range(100):
        if set(living()) <= before:
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_mismatch_says_where(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    verdict = await bench.judge(affine, forward("y = 2.0 * x + 1.0\ny[2, 7] += 5.0\nreturn y"), tmp_path)
    assert verdict.failure is not None and verdict.failure.mismatch is not None
    found = verdict.failure.mismatch
    assert (found.output, found.index, found.wrong_elements, found.elements) == ("output", (2, 7), 1, 384)
    assert found.got - found.expected == pytest.approx(5.0, rel=1e-3)
    assert found.max_abs_error == pytest.approx(5.0, rel=1e-3)
    assert verdict.failure.trial == 1


async def test_eating_memory(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    source = forward("kept = []\nwhile True:\n    kept.append(b'x' * (64 << 20))")
    verdict = await bench.judge(affine, source, tmp_path)
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.OUT_OF_MEMORY, verdict.failure
    assert "1.5 GiB" in verdict.failure.message


async def test_printing_a_lot(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    source = forward("return 2.0 * x + 1.0", before="for _ in range(500):\n    print('chatter ' * 12_500)")
    verdict = await bench.judge(affine, source, tmp_path)
    assert verdict.status in (Status.FAST, Status.SLOW), verdict.failure
    assert verdict.output is not None and len(verdict.output) < 100_000
    assert "bytes left out" in verdict.output


async def test_what_a_candidate_sees_of_the_environment(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    look = "print(dict(os.environ))\nprint(open('/proc/self/environ').read())\nprint('HOME', os.environ['HOME'])"
    verdict = await bench.judge(affine, forward("return 2.0 * x + 1.0", before=look), tmp_path)
    assert verdict.output is not None
    assert "LLM_GATEWAY_KEY" not in verdict.output and "secret-of-the-user" not in verdict.output
    assert f"HOME {tmp_path}/build/candidate/home" in verdict.output


async def test_parameters_of_the_same_names_are_the_reference_s(bench: Bench, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", LINEAR)
    source = """
    class ModelNew(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            torch.randn(100)  # another use of the generator: the seed alone would not do
            self.linear = nn.Linear(width, out)

        def forward(self, x):
            return x @ self.linear.weight.T + self.linear.bias
    """
    verdict = await bench.judge(problem, source, tmp_path)
    assert verdict.failure is None
    assert verdict.conditions.weights == "state_dict"


async def test_parameters_of_other_names_are_told_by_order_and_shape(bench: Bench, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", LINEAR)
    source = """
    class ModelNew(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            made = nn.Linear(width, out)
            self.w, self.b = made.weight, made.bias

        def forward(self, x):
            return torch.addmm(self.b, x, self.w.T)
    """
    verdict = await bench.judge(problem, source, tmp_path)
    assert verdict.failure is None
    assert verdict.conditions.weights == "order"


async def test_tuples_and_integers(bench: Bench, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", TOP)
    right = await bench.judge(problem, forward("v, i = torch.sort(x, -1, True)\nreturn v[:, :3], i[:, :3]"), tmp_path)
    assert right.failure is None
    wrong = await bench.judge(problem, forward("v, i = torch.topk(x, 3)\ni[1, 2] = 99\nreturn v, i"), tmp_path)
    assert wrong.failure is not None and wrong.failure.mismatch is not None
    assert wrong.failure.kind is FailureKind.WRONG_VALUES
    assert wrong.failure.mismatch.output == "output[1]"
    assert wrong.failure.mismatch.index == (1, 2)
    assert wrong.failure.mismatch.got == 99


SOCKETS = """
import stat
def sockets():
    for name in os.listdir('/proc/self/fd'):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield int(name)
        except OSError:
            pass
"""
FORGED = """
import json, struct
FRAME = {
    "ok": True, "seconds": 1e-9, "idle_seconds": float("nan"), "weights": "none",
    "leaves": [{"path": "output", "type": "Tensor", "dtype": "float32", "shape": [16, 24], "strides": ["a", []],
                "device": "cpu"}],
}
def forge():
    body = json.dumps(FRAME).encode()
    return b"HKW1" + struct.pack(">I", len(body)) + body
"""


async def test_junk_on_the_runner_s_channel(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    source = forward("for fd in sockets():\n    os.write(fd, b'junk' * 100)\nreturn 2.0 * x + 1.0", before=SOCKETS)
    verdict = await bench.judge(affine, source, tmp_path)
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.PROTOCOL


async def test_a_forged_answer_is_no_success(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    body = "for fd in sockets():\n    os.write(fd, forge())\nwhile True: pass"
    verdict = await bench.judge(affine, forward(body, before=SOCKETS + FORGED), tmp_path)
    assert verdict.status is Status.INCORRECT


async def test_events_do_not_stretch_a_limit(affine: Problem, tmp_path: Path) -> None:
    """A candidate that says again and again that it builds gets the limits of one build and one call."""
    say = """
    import json, struct, time
    def say(event):
        body = json.dumps({"event": event}).encode()
        for fd in sockets():
            os.write(fd, b"HKW1" + struct.pack(">I", len(body)) + body)
    """
    body = "while True:\n    say('build_begin')\n    time.sleep(0.001)\n    say('build_end')\n    time.sleep(0.05)"
    before = SOCKETS + "\n".join(line[4:] for line in say.splitlines())
    async with LocalEvaluator(DeviceKind.CPU, SHORT) as evaluator:
        verdict = await Bench(evaluator).judge(affine, forward(body, before=before), tmp_path)
    assert verdict.failure is not None
    assert verdict.failure.kind in (FailureKind.TIMEOUT, FailureKind.BUILD_TIMEOUT)


async def test_two_side_by_side_and_nobody_is_left(bench: Bench, affine: Problem, tmp_path: Path) -> None:
    before = set(living())
    pair = await asyncio.gather(
        bench.judge(affine, RIGHT, tmp_path / "one"),
        bench.judge(affine, forward("return x"), tmp_path / "two"),
    )
    assert pair[0].failure is None
    assert pair[1].failure is not None
    assert await _nobody_but(before)


async def test_problem_facts(bench: Bench, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", LINEAR)
    facts = await bench.evaluator.problem_facts(problem)
    assert facts.sizes is SizeSet.CPU
    assert [(fact.name, getattr(fact, "shape", None)) for fact in facts.outputs] == [("output", (8, 5))]
    assert [fact.name for fact in facts.parameters] == ["linear.weight", "linear.bias"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("2.0 * x + 1.0", "x[99]"), ("torch.randn(16, 24)", "1 / 0"), ("return []", "return [1, 2, 3]")],
    ids=["forward", "inputs", "constructor"],
)
async def test_a_problem_that_fails_is_not_the_candidate_s_fault(
    old: str, new: str, bench: Bench, tmp_path: Path
) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE.replace(old, new))
    before = set(living())
    with pytest.raises(ProblemError, match=r"1_Small\.py"):
        await bench.judge(problem, RIGHT, tmp_path)
    assert not (tmp_path / "build").exists()
    assert await _nobody_but(before)


async def test_a_reference_that_works_in_place(bench: Bench, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE.replace("2.0 * x + 1.0", "x.mul_(2.0).add_(1.0)"))
    verdict = await bench.judge(problem, RIGHT, tmp_path)
    assert verdict.failure is None


async def test_a_problem_without_end(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator_module, "FACTS_SECONDS", 0.5)
    problem = problem_file(
        tmp_path / "problems", AFFINE.replace("return [torch", "import time; time.sleep(3); return [torch")
    )
    with pytest.raises(WorkerLost, match=r"1_Small\.py: no answer within 0\.5 s"):
        await bench.evaluator.problem_facts(problem)


async def test_a_device_that_is_not_there() -> None:
    if torch.version.cuda:
        pytest.skip("this torch is built for CUDA")
    with pytest.raises(DeviceUnavailable, match="--device cpu"):
        async with LocalEvaluator(DeviceKind.CUDA, SETTINGS):
            pass
