"""The forty shipped problems at CPU size: they run, they are what they say, and no trivial answer passes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from hkbench.problems import SHIPPED, apply_sizes, constants_in_force, find_problems
from hkbench.records import Problem, SizeSet

PROBLEMS = find_problems(SHIPPED, 1)

#: How far the answer in the problem's own dtype may be from the float64 one, for the whole output's scale.
NATIVE_RTOL = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 1.6e-2}
#: The loosest tolerance of any judge; a trivial answer has to fail even this.
LOOSE_RTOL = 1.6e-2
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

#: Module scope makes pytest run the tests of one problem after another, so that its `Run` is made once.
per_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name, scope="module")


def execute(problem: Problem) -> ModuleType:
    module = ModuleType(f"problem_{problem.number}")
    exec(compile(problem.source, str(problem.path), "exec"), module.__dict__)
    apply_sizes(module.__dict__, constants_in_force(SizeSet.CPU, problem))
    return module


def leaves(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    else:
        assert isinstance(value, tuple | list)
        for item in value:
            yield from leaves(item)


def to_double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Run:
    """One forward pass of a problem with a fixed seed, in its own dtype and in float64 on the same values."""

    def __init__(self, problem: Problem) -> None:
        self.module = execute(problem)
        torch.manual_seed(7)
        with torch.no_grad():
            self.model = self.module.Model(*self.module.get_init_inputs())
            self.inputs: list[Any] = self.module.get_inputs()
            kept = [value.clone() for value in leaves(self.inputs)]
            self.outputs = list(leaves(self.model(*self.inputs)))
            self.inputs_kept = all(
                torch.equal(now, before) for now, before in zip(leaves(self.inputs), kept, strict=True)
            )
            self.exact = list(leaves(self.model.double()(*map(to_double, self.inputs))))


@pytest.fixture(scope="module")
def run_of() -> Callable[[Problem], Run]:
    # Only the latest is kept: forty sets of tensors need not be held.
    last: dict[str, Run] = {}

    def get(problem: Problem) -> Run:
        if problem.name not in last:
            last.clear()
            last[problem.name] = Run(problem)
        return last[problem.name]

    return get


def wrong_share(answer: torch.Tensor, expected: torch.Tensor) -> float:
    """The share of elements outside the loosest tolerance (whole numbers have to be equal)."""
    if not expected.is_floating_point():
        return (answer.to(expected.dtype) != expected).double().mean().item()
    scale = expected.square().mean().sqrt()
    wrong = (answer.double() - expected).abs() > LOOSE_RTOL * (expected.abs() + scale)
    return wrong.double().mean().item()


def test_the_forty_are_numbered_without_a_gap() -> None:
    assert [problem.number for problem in PROBLEMS] == list(range(1, 41))
    assert all(problem.cpu_sizes for problem in PROBLEMS)


@per_problem
def test_runs_and_gives_finite_tensors_of_its_dtype(problem: Problem, run_of: Callable[[Problem], Run]) -> None:
    run = run_of(problem)
    dtype = DTYPES[problem.name.rsplit("_", 1)[1]]
    floating = [output for output in run.outputs if output.is_floating_point()]
    assert floating
    assert {output.dtype for output in floating} == {dtype}
    assert {output.dtype for output in run.outputs} <= {dtype, torch.int64}
    assert all(bool(output.isfinite().all()) for output in run.outputs)
    parameters = list(run.module.Model(*run.module.get_init_inputs()).parameters())
    assert {parameter.dtype for parameter in parameters} <= {dtype}
    assert all(float(parameter.detach().float().std()) > 0.001 for parameter in parameters)
    assert run.inputs_kept


@per_problem
def test_float64_agrees_with_the_problems_own_dtype(problem: Problem, run_of: Callable[[Problem], Run]) -> None:
    run = run_of(problem)
    for native, exact in zip(run.outputs, run.exact, strict=True):
        assert native.shape == exact.shape
        if not native.is_floating_point():
            assert torch.equal(native, exact)
            continue
        assert exact.dtype is torch.float64
        rtol = NATIVE_RTOL[native.dtype]
        scale = exact.square().mean().sqrt()
        excess = (native.double() - exact).abs() / (rtol * (exact.abs() + scale))
        assert excess.max().item() <= 1.0


@per_problem
def test_every_call_draws_new_inputs(problem: Problem, run_of: Callable[[Problem], Run]) -> None:
    run = run_of(problem)
    again = list(leaves(run.module.get_inputs()))
    first = list(leaves(run.inputs))
    assert [(value.shape, value.dtype) for value in again] == [(value.shape, value.dtype) for value in first]
    assert any(not torch.equal(one, other) for one, other in zip(first, again, strict=True))


@per_problem
def test_no_trivial_answer_passes(problem: Problem, run_of: Callable[[Problem], Run]) -> None:
    """Not even in nine of ten elements: a constant, or an input handed back."""
    run = run_of(problem)
    for expected in run.exact:
        answers = {"zeros": torch.zeros_like(expected), "ones": torch.ones_like(expected)}
        if expected.numel() > 1:
            answers["mean"] = torch.full_like(expected, expected.double().mean().item())
        for name, answer in answers.items():
            assert wrong_share(answer, expected) > 0.1, name
    # A problem with two outputs may hand on an intermediate sum; every input has to be wrong for one of them.
    for value in leaves(run.inputs):
        fitting = [expected for expected in run.exact if expected.shape == value.shape]
        assert not fitting or max(wrong_share(value, expected) for expected in fitting) > 0.1


@per_problem
def test_outputs_follow_the_inputs(problem: Problem, run_of: Callable[[Problem], Run]) -> None:
    """Another draw gives another result, also where the output is a single number."""
    run = run_of(problem)
    model = run.model.double()
    with torch.no_grad():
        shares = []
        for _ in range(3):
            fresh = [to_double(value) for value in run.module.get_inputs()]
            shares.append([wrong_share(old, new) for old, new in zip(run.exact, leaves(model(*fresh)), strict=True)])
    assert all(max(column) > 0.1 for column in zip(*shares, strict=True))


def test_no_problem_gives_a_warning() -> None:
    """All forty in one fresh interpreter with `-W error`, the way a judge would execute them."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "import torch\n"
        "torch.set_num_threads(1)\n"
        "for path in sys.argv[1:]:\n"
        "    space = {'__name__': 'problem'}\n"
        "    exec(compile(Path(path).read_text(encoding='utf-8'), path, 'exec'), space)\n"
        "    space.update(space['CPU_SIZES'])\n"
        "    with torch.device('cpu'), torch.no_grad():\n"
        "        space['Model'](*space['get_init_inputs']())(*space['get_inputs']())\n"
    )
    paths = [str(problem.path) for problem in PROBLEMS]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *paths], capture_output=True, text=True, cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr
