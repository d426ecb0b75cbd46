"""Candidates whose runners see no library's device code, judged on a CPU: the same processes and cages as on a GPU."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from support.device_code import kernels, library
from support.isolation import runner_layers
from support.processes import left_behind
from support.small_problems import AFFINE, candidate_file, forward, problem_file

from hkbench.device_kinds import model_of
from hkbench.engine import library_free
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, Problem, Verdict
from hkbench.sandbox.cage import NAMESPACES

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not any(layer.startswith(NAMESPACES) for layer in runner_layers()), reason="no mount namespaces here"
    ),
]

SETTINGS = EvaluationSettings(busy_wait=0.0, shapes=0, trials=2, timing_runs=5, timing_seconds=5.0, warmups=1)
COMPUTES = "gemm_kernel"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """A folder that candidates can read, with a library that carries a kernel."""
    folder = tmp_path_factory.mktemp("installed")
    library(folder / "libkernels.so", "", kernels(folder, COMPUTES))
    yield folder


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evaluator(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalEvaluator]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("LD_LIBRARY_PATH", str(installed))
        patch.setattr(library_free, "_CHECK", "this")  # the host computes, whatever is replaced
        patch.setattr(library_free, "model_of", lambda kind: replace(model_of(kind), libraries_removable=True))
        async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
            yield evaluator
    assert left_behind() == {}


@pytest.fixture
def affine(tmp_path: Path) -> Problem:
    return problem_file(tmp_path / "problems", AFFINE)


async def judged(evaluator: LocalEvaluator, problem: Problem, source: str, folder: Path) -> Verdict:
    result = await evaluator.evaluate(problem, candidate_file(folder, source), folder / "build", "cpp")
    assert result.verdict is not None
    return result.verdict


async def test_a_runner_sees_the_copy(
    evaluator: LocalEvaluator, installed: Path, affine: Problem, tmp_path: Path
) -> None:
    path = installed / "libkernels.so"
    assert COMPUTES.encode() in path.read_bytes()
    sees = f"raise ValueError({COMPUTES!r} in open({str(path)!r}, errors='replace').read())"
    verdict = await judged(evaluator, affine, forward(sees), tmp_path)
    assert verdict.failure is not None
    assert "False" in verdict.failure.message


async def test_who_misses_libraries_is_judged_with_them(
    evaluator: LocalEvaluator, installed: Path, affine: Problem, tmp_path: Path
) -> None:
    path = installed / "libkernels.so"
    needs = f"{COMPUTES!r} in open({str(path)!r}, errors='replace').read()"
    verdict = await judged(evaluator, affine, forward(f"return 2.0 * x + 1.0 if {needs} else no_cublas()"), tmp_path)
    assert len(verdict.trials) == 2  # all right: whose work it was is asked after them


@pytest.mark.slow
async def test_torch_compile_is_what_a_candidate_misses(
    evaluator: LocalEvaluator, affine: Problem, tmp_path: Path
) -> None:
    steps: list[str] = []
    code = candidate_file(tmp_path, forward("return torch.compile(lambda y: 2.0 * y + 1.0)(x)"))
    result = await evaluator.evaluate(
        affine, code, tmp_path / "build", "cpp", lambda stage, _device: steps.append(stage.value)
    )
    assert result.verdict is not None and len(result.verdict.trials) == 2
    assert steps.count("parse") == 2


async def test_a_custom_operator_needs_no_compiler(evaluator: LocalEvaluator, affine: Problem, tmp_path: Path) -> None:
    source = """
import torch
from torch import nn

@torch.library.custom_op("library_free::affine", mutates_args=())
def affine(x: torch.Tensor) -> torch.Tensor:
    return 2.0 * x + 1.0

class ModelNew(nn.Module):
    def forward(self, x):
        return affine(x)
"""
    steps: list[str] = []
    code = candidate_file(tmp_path, source)
    result = await evaluator.evaluate(
        affine, code, tmp_path / "build", "cpp", lambda stage, _device: steps.append(stage.value)
    )
    assert result.verdict is not None and len(result.verdict.trials) == 2
    assert steps.count("parse") == 1


async def test_who_fails_for_another_reason_is_judged_once(
    evaluator: LocalEvaluator, affine: Problem, tmp_path: Path
) -> None:
    verdict = await judged(evaluator, affine, forward("raise RuntimeError('of its own')"), tmp_path)
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.RUNTIME_ERROR
