from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from support.jobs import evaluate_job
from support.small_problems import AFFINE, problem_file

from hkbench.evaluation.link import RunnerLink
from hkbench.evaluation.rehearsal import compilers, rehearse
from hkbench.protocol import messages
from hkbench.protocol.places import TensorArgument
from hkbench.records import DeviceKind, EvaluationSettings, Problem, SizeSet

IN_FORWARD = "def forward(self, x):\n    return load_inline(name='a', cpp_sources=S).f(x)\n"


class Link:
    """A runner's, which has built something while it was imported, or has not."""

    def __init__(self, builds: int) -> None:
        self.builds = builds
        self.asked: list[messages.Rehearse] = []

    def request(
        self, request: messages.Rehearse, _seconds: float, _build_seconds: float, _on_build: Callable[[], None]
    ) -> object:
        self.asked.append(request)
        return {"ok": True}


def asked(problem: Problem, text: str, builds: int = 0) -> list[messages.Rehearse]:
    job = evaluate_job(
        problem=problem,
        backend="cpp",
        device=DeviceKind.CPU,
        sizes=SizeSet.CPU,
        settings=EvaluationSettings(load_timeout=10.0),
    )
    link = Link(builds)
    rehearse(cast("RunnerLink", link), job, text, lambda: None)
    return link.asked


@pytest.fixture
def affine(tmp_path: Path) -> Problem:
    return problem_file(tmp_path, AFFINE)


@pytest.mark.parametrize(
    ("text", "builds", "expected"),
    [
        (IN_FORWARD, 0, True),
        (IN_FORWARD, 1, False),  # at the level of the module
        (IN_FORWARD * 2, 1, True),
        ("return torch.relu(x)", 0, False),
        ("import triton", 0, True),
        ("self.f = torch.compile(f)", 0, True),
        ("from torch import compile as quick", 0, True),
        ("re.compile('a')", 0, False),
    ],
)
def test_who_may_build_later_is_rehearsed(text: str, builds: int, expected: bool, affine: Problem) -> None:
    assert bool(asked(affine, text, builds)) is expected


def test_the_runner_is_told_shapes_and_less_time_than_an_import_has(affine: Problem) -> None:
    (request,) = asked(affine, IN_FORWARD)
    assert request.device == "cpu"
    assert all(isinstance(argument, TensorArgument) for argument in request.inputs)
    assert request.seconds == 5.0


def test_a_problem_that_needs_numbers_is_not_rehearsed(tmp_path: Path) -> None:
    source = AFFINE.replace("torch.randn(16, 24)", "torch.randn(16, int(torch.ones(1).item()))")
    assert source != AFFINE
    assert asked(problem_file(tmp_path, source), IN_FORWARD) == []


def test_what_torch_compile_imports_is_imported_before() -> None:
    assert compilers("torch.compile(f)")[0] == "triton"
    assert compilers("@triton.jit") == ["triton"]
    assert compilers("load_inline()") == []
