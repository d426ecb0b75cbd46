"""What the evaluator demands beyond right answers, by small candidates that do the work in their own compiled code."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
import pytest_asyncio
from support.small_problems import candidate_file, problem_file

from hkbench.engine import evaluator as evaluator_module
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.errors import IsolationUnavailable
from hkbench.problems import load_problem
from hkbench.records import (
    DeviceKind,
    EvaluationSettings,
    FailureKind,
    Isolation,
    IsolationLevel,
    Ownership,
    Protection,
    Rule,
    Status,
    Track,
    Verdict,
)

pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    shapes=0,
    trials=3,
    timing_runs=10,
    timing_seconds=5.0,
    warmups=1,
    load_timeout=60.0,
    run_timeout=20.0,
    profile_slow=False,
)
CORRECT = (Status.FAST, Status.SLOW)

#: y = x * gain + bias; the bias begins as zeros, so that only changed parameters show whether it is added.
SCALE = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gain = nn.Parameter(torch.rand(width) + 0.5)
            self.bias = nn.Parameter(torch.zeros(width))

        def forward(self, x):
            return x * self.gain + self.bias

    def get_inputs():
        return [torch.randn(512, 512)]

    def get_init_inputs():
        return [512]
"""

NATIVE = '''
import ctypes
import subprocess
from pathlib import Path

SOURCE = r"""
extern "C" void scale(const float* x, const float* gain, const float* bias, float* y, long rows, long width,
                      long times) {
  for (long again = 0; again < times; ++again)
    for (long i = 0; i < rows; ++i)
      for (long j = 0; j < width; ++j) {
        y[i * width + j] = x[i * width + j] * gain[j] + bias[j];
        asm volatile("" ::: "memory");
      }
}
"""
Path("scale.cpp").write_text(SOURCE)
subprocess.run(["g++", "-O2", "-shared", "-fPIC", "scale.cpp", "-o", "scale.so"], check=True)
library = ctypes.CDLL(str(Path("scale.so").resolve()))
library.scale.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3


def scale(x, gain, bias, y=None, times=1):
    y = torch.empty_like(x) if y is None else y
    library.scale(x.data_ptr(), gain.data_ptr(), bias.data_ptr(), y.data_ptr(), *x.shape, times)
    return y
'''


def own(forward: str, more: str = "", before: str = "", names: tuple[str, str] = ("gain", "bias")) -> str:
    """A candidate for SCALE whose forward may call `scale`; `more` goes into its constructor."""
    gain, bias = names
    init = f"super().__init__()\nself.{gain} = nn.Parameter(torch.rand(width) + 0.5)\n"
    init += f"self.{bias} = nn.Parameter(torch.zeros(width))\n" if bias else ""
    init += textwrap.dedent(more)
    body = textwrap.indent(textwrap.dedent(forward).strip("\n"), " " * 8)
    return (
        f"{NATIVE}\n{textwrap.dedent(before)}\nclass ModelNew(nn.Module):\n    def __init__(self, width):\n"
        f"{textwrap.indent(init, ' ' * 8)}\n    def forward(self, x):\n{body}\n"
    )


HONEST = own("return scale(x, self.gain, self.bias)")


@dataclass(frozen=True)
class Bench:
    evaluator: LocalEvaluator

    async def judge(self, source: str, folder: Path) -> Verdict:
        problem = problem_file(folder / "problems", SCALE)
        result = await self.evaluator.evaluate(problem, candidate_file(folder, source), folder / "build", "cpp")
        assert result.verdict is not None
        return result.verdict


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench() -> AsyncIterator[Bench]:
    async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
        yield Bench(evaluator)


async def test_own_code_is_accepted_and_the_verdict_says_by_what(bench: Bench, tmp_path: Path) -> None:
    verdict = await bench.judge(HONEST, tmp_path)
    assert verdict.status in CORRECT, verdict.failure
    assert [trial.parameters for trial in verdict.trials] == ["own", "random", "random"]
    assert verdict.conditions.track is Track.OWN
    assert verdict.conditions.weights == "state_dict"
    known = verdict.conditions.device_facts
    assert known is not None and known.sources["llc_bytes"] == "the operating system"
    assert verdict.clocks is not None and verdict.clocks.agree
    # A kernel of microseconds: most of the pass is the interpreter.
    assert verdict.work is not None and verdict.work.pytorch + verdict.work.library < 0.15
    for timing in (verdict.baseline, verdict.candidate):
        assert timing is not None and timing.judge_wall is not None
        assert all(wall > seconds for wall, seconds in zip(timing.judge_wall, timing.samples, strict=True))


async def test_the_verdict_says_what_the_kernels_are_written_in(bench: Bench, tmp_path: Path) -> None:
    """Of a pass that is long enough for the sampler to meet the kernel in it; whether it counts is not asked here."""
    verdict = await bench.judge(own("return scale(x, self.gain, self.bias, times=40)"), tmp_path)
    assert verdict.language is not None, verdict.failure
    assert (verdict.language.backend, verdict.language.ran) == ("cpp", True)
    assert verdict.language.reason == "native code of its scale.so ran"


async def test_whose_work_a_call_of_a_millisecond_was_is_established(bench: Bench, tmp_path: Path) -> None:
    """README's own verdict: two threads of it on two processors leave the sampler little time."""
    problem, code = ROOT / "problems" / "level1" / "4_RMSNorm_fp32.py", ROOT / "examples" / "candidates" / "fast.py"
    result = await bench.evaluator.evaluate(load_problem(problem), code, tmp_path / "build", "cpp")
    assert result.verdict is not None and result.verdict.status in CORRECT, result.verdict
    assert result.verdict.ownership is Ownership.OWN, result.verdict.work


async def test_parameters_of_other_names_are_accepted(bench: Bench, tmp_path: Path) -> None:
    verdict = await bench.judge(own("return scale(x, self.first, self.second)", names=("first", "second")), tmp_path)
    assert verdict.status in CORRECT, verdict.failure
    assert verdict.conditions.weights == "order"


STALE = """
if self.kept is None:
    self.kept = self.gain.detach().clone(), self.bias.detach().clone()
return scale(x, *self.kept)
"""
TOUCHED = """
y = scale(x, self.gain, self.bias)
self.gain.data[0] = torch.nextafter(self.gain.data[0], torch.tensor(9.0))
return y
"""
REUSED = """
if self.kept is None:
    self.kept = torch.empty_like(x)
return scale(x, self.gain, self.bias, self.kept)
"""
ONCE = """
mark = x[0, 0].item()
y = scale(x, self.gain, self.bias)
if mark == self.kept:
    y[3] = 0.0
self.kept = mark
return y
"""
KEPT = "self.kept = None"
FAILURES = {
    "stale parameters": (own(STALE, KEPT), FailureKind.STALE_PARAMETERS, "before", Rule.PARAMETERS_CHANGE),
    "bias left out": (
        own("return scale(x, self.gain, self.none)", "self.register_buffer('none', torch.zeros(width))"),
        FailureKind.STALE_PARAMETERS,
        "it is not used",
        Rule.PARAMETERS_CHANGE,
    ),
    "a parameter missing": (
        own("return scale(x, self.gain, torch.zeros(512))", names=("gain", "")),
        FailureKind.WRONG_PARAMETERS,
        "bias",
        Rule.SAME_PARAMETERS,
    ),
    "a parameter modified": (own(TOUCHED), FailureKind.STATE_MODIFIED, "gain", Rule.UNTOUCHED),
    "an input modified": (
        own("y = scale(x, self.gain, self.bias)\nx[1, 2] = 7.0\nreturn y"),
        FailureKind.INPUT_MODIFIED,
        "input 0",
        Rule.UNTOUCHED,
    ),
    "an input returned": (
        own("return scale(x, self.gain, self.bias, x)"),
        FailureKind.ALIASED_OUTPUT,
        "memory of an input",
        Rule.OWN_MEMORY,
    ),
    "an output used again": (own(REUSED, KEPT), FailureKind.ALIASED_OUTPUT, "result before it", Rule.OWN_MEMORY),
    "right only once": (own(ONCE, KEPT), FailureKind.NOT_REPEATABLE, "same inputs", Rule.FRESH_RESULTS),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_what_breaks_a_rule(name: str, bench: Bench, tmp_path: Path) -> None:
    source, kind, text, rule = FAILURES[name]
    verdict = await bench.judge(source, tmp_path)
    assert verdict.status is Status.INCORRECT
    assert verdict.failure is not None
    assert verdict.failure.kind is kind, verdict.failure
    assert text in verdict.failure.message
    assert verdict.failure.rule is rule


#: On one thread: two of them wait for each other at each operator, for long when others use the processors too.
LIBRARY = own("for _ in range(20):\n    y = x * self.gain + self.bias\nreturn y", "torch.set_num_threads(1)")


async def test_kernels_of_pytorch_are_refused_in_the_track_of_own_ones(bench: Bench, tmp_path: Path) -> None:
    verdict = await bench.judge(LIBRARY, tmp_path)
    assert verdict.status is Status.REFUSED
    assert verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.rule) == (FailureKind.NOT_OWN, Rule.OWN_KERNELS), verdict.failure
    assert verdict.speedup is None and verdict.trials
    assert verdict.work is not None and verdict.work.pytorch > 0.5


async def test_work_that_looked_like_pytorchs_once_is_looked_at_again(bench: Bench, tmp_path: Path) -> None:
    """As when a machine with other work stops a traced call within an operator: the traced calls of the first time."""
    forward = """
        if torch.autograd._profiler_enabled() and len(TRACED) < 3:
            TRACED.append([x * self.gain + self.bias for _ in range(6)])
        return scale(x, self.gain, self.bias)
    """
    verdict = await bench.judge(own(forward, before="TRACED = []"), tmp_path)
    assert verdict.status in CORRECT, verdict.failure
    assert verdict.work is not None and verdict.work.pytorch < 0.15


async def test_kernels_of_pytorch_are_reported_in_the_track_of_any(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"track": Track.ANY})
    async with LocalEvaluator(DeviceKind.CPU, settings) as evaluator:
        verdict = await Bench(evaluator).judge(LIBRARY, tmp_path)
    assert verdict.status in CORRECT, verdict.failure
    assert verdict.conditions.track is Track.ANY
    assert verdict.work is not None and verdict.work.pytorch > 0.5


FORGED = """
import sys

wire = next(module for name, module in sys.modules.items() if name.endswith("col.wire"))
written = wire._written


def forged(message):
    return written({key: value / 4 if "seconds" in key and value else value for key, value in message.items()})


wire._written = forged
"""


async def test_a_forged_time_is_not_used(bench: Bench, tmp_path: Path) -> None:
    """The call takes tens of milliseconds, of which the runner would admit a quarter."""
    work = "return scale(x, self.gain, self.bias, times=100)"
    honest = await bench.judge(own(work), tmp_path / "honest")
    forged = await bench.judge(own(work, before=FORGED), tmp_path / "forged")
    assert forged.status in CORRECT, forged.failure
    assert forged.candidate is not None and honest.candidate is not None
    assert forged.candidate.median.value > honest.candidate.median.value / 2


WATCHER = """
import threading
import time


class Watcher:
    '''Looks at the input's memory all the time, and notes when it finds something new there.'''

    def __init__(self, x):
        self.x, self.found, self.at, self.looks = x, None, 0.0, 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            value = self.x[0, 0].item()
            if value != self.found:
                self.found, self.at = value, time.perf_counter()
            self.looks += 1
            time.sleep(0.0001)
"""
WATCHED = """
now, value = time.perf_counter(), x[0, 0].item()
if self.kept is None:
    self.kept = Watcher(x)
elif self.kept.found == value:
    print("EARLY", now - self.kept.at)
y = scale(x, self.gain, self.bias, times=20)
print("LOOKS", self.kept.looks)
return y
"""


async def test_inputs_cannot_be_seen_before_the_call(bench: Bench, tmp_path: Path) -> None:
    """A thread may win the race to forward's first line, by the switch of a thread; not by what preparing takes."""
    verdict = await bench.judge(own(WATCHED, KEPT, WATCHER), tmp_path)
    assert verdict.output is not None
    said = [line.split() for line in verdict.output.splitlines()]
    assert max(int(words[1]) for words in said if words[0] == "LOOKS") > 20
    # Of all calls: a busy machine can hold up a single one between the thaw and the first line.
    early = [float(words[1]) for words in said if words[0] == "EARLY"]
    assert median(early or [0.0]) < 0.01


async def test_the_verdict_says_what_confined_the_candidate(bench: Bench, tmp_path: Path) -> None:
    verdict = await bench.judge(HONEST, tmp_path)
    isolation = verdict.conditions.isolation
    assert isolation == bench.evaluator.isolation
    assert "guard" in isolation.layers
    assert (isolation.level is IsolationLevel.FULL) == (set(isolation.holds) == set(Protection))
    for reason in isolation.missing:
        assert f"confinement: {reason}" in verdict.conditions.not_checked


async def test_less_confinement_than_required_judges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def survey() -> Isolation:
        return Isolation(
            level=IsolationLevel.PARTIAL,
            layers=("guard", "seccomp"),
            holds=(Protection.SYSCALLS, Protection.LIMITS),
            missing=("files: this kernel has no landlock",),
        )

    monkeypatch.setattr(evaluator_module, "survey", survey)
    settings = SETTINGS.model_copy(update={"require_isolation": IsolationLevel.FULL})
    with pytest.raises(IsolationUnavailable, match=r"level `partial` here(?s:.)*no landlock"):
        async with LocalEvaluator(DeviceKind.CPU, settings):
            pass
