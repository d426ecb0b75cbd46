"""Prompts say what the evaluator of this run holds answers to."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from hkbench.cli.arguments import PROMPTS
from hkbench.engine import LocalEvaluator
from hkbench.lab.prompting import Prompter
from hkbench.problems import SHIPPED, load_problem
from hkbench.prompts import load_prompts
from hkbench.records import (
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    Problem,
    ProblemFacts,
    SizeSet,
    TensorFact,
)

PROBLEM: Path = SHIPPED / "level1" / "4_RMSNorm_fp32.py"


class Described:
    """In place of the evaluator: a device, and what a problem's own code says."""

    device = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU")

    async def problem_facts(self, _: Problem) -> ProblemFacts:
        tensor = TensorFact(name="x", shape=(4, 4), dtype="float32", strides=(4, 1))
        return ProblemFacts(sizes=SizeSet.CPU, inputs=(tensor,), init_inputs=(), outputs=(tensor,), parameters=())


@pytest.mark.parametrize(("rtol", "stated"), [({}, "rtol: float32 0.0001;"), ({"float32": 1e-5}, "float32 1e-05;")])
async def test_the_tolerance_in_force(rtol: dict[str, float], stated: str) -> None:
    book, evaluator = load_prompts(PROMPTS), cast(LocalEvaluator, Described())
    prompter = Prompter(book, "cpp", evaluator, EvaluationSettings(rtol=rtol))
    prompt = await prompter.render(load_problem(PROBLEM), None)
    assert stated in " ".join(prompt.text.split())
