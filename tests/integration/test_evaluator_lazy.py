"""The real evaluator on candidates that call a compiler in `__init__` or in their first call."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.small_problems import AFFINE, candidate_file, problem_file

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, Stage, Status, Track

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None or shutil.which("ninja") is None, reason="no g++ or ninja"),
]

SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    track=Track.ANY, trials=2, timing_runs=5, warmups=1, build_timeout=300.0, load_timeout=60.0, run_timeout=30.0,
    profile_slow=False,
)  # fmt: skip

HEAD = """
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <cstdint>
#include <pybind11/pybind11.h>
void affine(uintptr_t x_at, uintptr_t out_at, int64_t count) {
    const float* x = reinterpret_cast<const float*>(x_at);
    float* out = reinterpret_cast<float*>(out_at);
    for (int64_t i = 0; i < count; ++i) out[i] = 2.0f * x[i] + 1.0f;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("affine", &affine); }
'''

def built():
    return load_inline(name="affine", cpp_sources=SOURCE, no_implicit_headers=True, extra_cflags=["-O1"])

def answer(extension, x):
    out = torch.empty_like(x)
    extension.affine(x.data_ptr(), out.data_ptr(), x.numel())
    return out
"""

IN_INIT = (
    HEAD
    + """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = built()

    def forward(self, x):
        return answer(self.extension, x)
"""
)

IN_FORWARD = (
    HEAD
    + """
class ModelNew(nn.Module):
    extension = None

    def forward(self, x):
        if ModelNew.extension is None:
            ModelNew.extension = built()
        return answer(self.extension, x)
"""
)

PLAIN = """
class ModelNew(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0
"""


@dataclass
class Told:
    """What one evaluation told of its stages, with the device that it had and when, and what came of it."""

    stages: list[tuple[Stage, int | None, float]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    result: EvaluationResult | None = None

    def on_stage(self, stage: Stage, device: int | None) -> None:
        self.stages.append((stage, device, time.time()))

    @property
    def built_with(self) -> list[int | None]:
        """The devices that it had when it began to build."""
        return [device for stage, device, _ in self.stages if stage is Stage.BUILD]

    @property
    def seconds_with_device(self) -> float:
        """How long it built while it had a device."""
        times = [*(at for _, _, at in self.stages[1:]), time.time()]
        return sum(
            end - at
            for (stage, device, at), end in zip(self.stages, times, strict=True)
            if stage is Stage.BUILD and device is not None
        )

    @property
    def seconds(self) -> float:
        """How long it built."""
        assert self.result is not None and self.result.verdict is not None
        return sum(one.seconds for one in self.result.verdict.stages if one.stage is Stage.BUILD)


async def judged(folder: Path, *candidates: str, settings: EvaluationSettings = SETTINGS) -> list[Told]:
    """Return what became of the candidates, side by side."""
    problem = problem_file(folder / "problems", AFFINE)
    told = [Told() for _ in candidates]

    async def judge(evaluator: LocalEvaluator, number: int) -> None:
        home = folder / str(number)
        home.mkdir()
        code = candidate_file(home, candidates[number])
        one = told[number]
        one.result = await evaluator.evaluate(
            problem, code, home / "build", "cpp", one.on_stage, on_step=one.steps.append
        )

    async with LocalEvaluator(DeviceKind.CPU, settings, builds=2) as evaluator:
        await asyncio.gather(*(judge(evaluator, number) for number in range(len(candidates))))
    return told


async def test_the_device_is_not_lent_while_a_compiler_runs(tmp_path: Path) -> None:
    """Two that build late are built side by side, as those are that build at once; the third is measured."""
    told = await judged(tmp_path, IN_INIT, IN_FORWARD, PLAIN)
    for one in told:
        assert one.result is not None and one.result.verdict is not None and one.result.turns is not None
        assert one.result.verdict.failure is None
        assert one.result.verdict.status in (Status.FAST, Status.SLOW)
    lazy = told[:2]
    assert [one.built_with[0] for one in lazy] == [None, None]
    assert all(one.seconds_with_device < one.seconds / 4 for one in lazy), "the compiler ran once more"
    assert told[2].built_with == []
    begun = [next(at for stage, _, at in one.stages if stage is Stage.BUILD) for one in lazy]
    assert max(begun) < min(at + one.seconds for at, one in zip(begun, lazy, strict=True)), "one after the other"


async def test_what_does_not_compile_is_compiled_once(tmp_path: Path) -> None:
    (told,) = await judged(tmp_path, IN_FORWARD.replace("2.0f * x[i]", "2.0f * y[i]"))
    assert told.result is not None and told.result.verdict is not None and told.result.verdict.failure is not None
    assert told.result.verdict.failure.kind is FailureKind.BUILD_ERROR
    assert "y" in told.result.verdict.failure.message
    assert told.built_with == [None]


async def test_a_compiler_without_end_never_has_the_device(tmp_path: Path) -> None:
    endless = """
template <int N, unsigned long long P> struct Tree {
    static constexpr unsigned long long value = Tree<N - 1, 2 * P>::value + Tree<N - 1, 2 * P + 1>::value;
};
template <unsigned long long P> struct Tree<0, P> { static constexpr unsigned long long value = 1; };
constexpr unsigned long long leaves = Tree<60, 1>::value;
"""
    settings = SETTINGS.model_copy(update={"build_timeout": 3.0})
    candidate = IN_INIT.replace("void affine", f"{endless}\nvoid affine", 1)
    (told,) = await judged(tmp_path, candidate, settings=settings)
    assert told.result is not None and told.result.verdict is not None and told.result.verdict.failure is not None
    assert told.result.verdict.failure.kind is FailureKind.BUILD_TIMEOUT
    assert told.result.turns is not None and told.result.turns.lent is None


#: Its first calls ask for a build, of which nothing comes.
TUNED = """
import contextlib
from torch.utils import cpp_extension

class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        ModelNew.calls += 1
        if ModelNew.calls <= CALLS:
            with contextlib.suppress(TypeError):
                cpp_extension.load_inline(tuned=True)
        return 2.0 * x + 1.0
"""


async def test_what_compiles_in_later_calls_is_warmed_up_before_it_is_timed(tmp_path: Path) -> None:
    never, once, always = await judged(tmp_path, *(TUNED.replace("CALLS", str(calls)) for calls in (1, 7, 1_000_000)))
    warm_ups = [sum(step.startswith("warm-up") for step in one.steps) for one in (never, once, always)]
    assert warm_ups[0] == 0 < warm_ups[1] < warm_ups[2]
    for one, doubtful in ((never, False), (once, False), (always, True)):
        assert one.result is not None and one.result.verdict is not None
        warnings = one.result.verdict.conditions.warnings
        assert any("something was compiled" in warning for warning in warnings) is doubtful
