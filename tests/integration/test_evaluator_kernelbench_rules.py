"""`--rules kernelbench`: what KernelBench's contract lets pass is judged correct, and the verdict names our rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from integration.test_evaluator_trust import KEPT, ONCE, REUSED, SETTINGS, STALE, TOUCHED, Bench, own

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, FailureKind, RuleSet, Status, Track

pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

CORRECT = (Status.FAST, Status.SLOW)
FURTHER = "self.more = nn.Parameter(self.gain.detach().clone())"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench() -> AsyncIterator[Bench]:
    settings = SETTINGS.model_copy(update={"rules": RuleSet.KERNELBENCH, "track": Track.ANY})
    async with LocalEvaluator(DeviceKind.CPU, settings) as evaluator:
        yield Bench(evaluator)


ACCEPTED = {
    "nothing is broken": (own("return scale(x, self.gain, self.bias)"), set()),
    "a static output buffer, and a further parameter": (
        own(REUSED, f"{KEPT}\n{FURTHER}"),
        {FailureKind.ALIASED_OUTPUT, FailureKind.WRONG_PARAMETERS},
    ),
    "a result in place, of parameters that are kept": (
        own(STALE.replace("*self.kept", "*self.kept, x"), KEPT),
        {FailureKind.ALIASED_OUTPUT, FailureKind.INPUT_MODIFIED, FailureKind.STALE_PARAMETERS},
    ),
    "right on the problem's own inputs alone, and parameters touched": (
        own(TOUCHED.replace("return y", "return y if x.abs().max() < 8 else y * 0")),
        {FailureKind.WRONG_VALUES},
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
async def test_what_kernelbench_accepts(name: str, bench: Bench, tmp_path: Path) -> None:
    source, kinds = ACCEPTED[name]
    verdict = await bench.judge(source, tmp_path)
    assert verdict.status in CORRECT, verdict.failure
    assert verdict.conditions.rules is RuleSet.KERNELBENCH
    assert {failure.kind for failure in verdict.would_fail} == kinds
    assert {(trial.inputs, trial.parameters) for trial in verdict.trials} == {("own", "own")}
    assert [one.atol for one in verdict.conditions.tolerances] == [1e-4]


REFUSED = {
    "an error beyond the tolerance": (
        own("y = scale(x, self.gain, self.bias)\ny[0, 0] += 0.01\nreturn y"),
        FailureKind.WRONG_VALUES,
    ),
    "right only once": (own(ONCE, KEPT), FailureKind.NOT_REPEATABLE),
    "parameters drawn in another order": (
        own("return scale(x, self.gain, self.bias)", "torch.rand(3)\nnn.init.uniform_(self.gain)"),
        FailureKind.WRONG_VALUES,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_kernelbench_refuses_too(name: str, bench: Bench, tmp_path: Path) -> None:
    source, kind = REFUSED[name]
    verdict = await bench.judge(source, tmp_path)
    assert verdict.failure is not None and verdict.failure.kind is kind, verdict
    assert verdict.conditions.rules is RuleSet.KERNELBENCH


async def test_who_dies_in_the_trials_of_our_rules_has_passed_kernelbenchs(bench: Bench, tmp_path: Path) -> None:
    forward = "y = scale(x, self.gain, self.bias)\nif x.abs().max() > 8:\n    import os\n    os._exit(3)\nreturn y"
    verdict = await bench.judge(own(forward), tmp_path)
    assert verdict.status in CORRECT, verdict.failure
    assert [failure.kind for failure in verdict.would_fail] == [FailureKind.CRASH]
