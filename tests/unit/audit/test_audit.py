from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.small_problems import AFFINE, LINEAR, problem_file

from hkbench.audit.audit import audit_problem
from hkbench.audit.records import ProblemAudit
from hkbench.audit.shrink import MAX_ELEMENTS, shrunk, size_of
from hkbench.errors import ProblemError
from hkbench.records import SizeSet


def module(forward: str, inputs: str, before: str = "") -> str:
    return (
        f"import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n{before}\n"
        "class Model(nn.Module):\n"
        f"    def forward(self, {forward.partition(':')[0]}):\n        return {forward.partition(':')[2]}\n"
        f"def get_inputs():\n    return [{inputs}]\n"
        "def get_init_inputs():\n    return []\n"
    )


def audited(folder: Path, source: str) -> ProblemAudit:
    return audit_problem(problem_file(folder, source), SizeSet.CPU, torch.device("cpu"), 5)


def test_a_sound_problem_holds_under_both_checks(tmp_path: Path) -> None:
    audit = audited(tmp_path, AFFINE)
    assert audit.hkbench.null == ()
    assert audit.kernelbench.null == ()
    assert {"zeros", "first rows only", "input 0", "half of the dimension of 16"} <= set(audit.hkbench.tried)


def test_an_output_of_zeros_is_weak_for_zeros(tmp_path: Path) -> None:
    audit = audited(tmp_path, module("x: torch.relu(-1.0 - x)", "torch.rand(8, 16)"))
    assert "zeros" in audit.hkbench.null
    assert "an earlier output" in audit.hkbench.null


def test_small_outputs_are_weak_for_an_absolute_tolerance_only(tmp_path: Path) -> None:
    """Softmax over many elements: every one is below KernelBench's absolute tolerance."""
    audit = audited(tmp_path, module("x: torch.softmax(x, 1)", "torch.rand(2, 20000)"))
    assert "zeros" in audit.kernelbench.null
    assert audit.hkbench.null == ()
    assert "softmax without subtracting the maximum" in audit.kernelbench.close


def test_each_row_by_itself_is_another_way_of_doing_row_wise_work(tmp_path: Path) -> None:
    audit = audited(tmp_path, module("x: x.sum(1)", "torch.randn(8, 16)"))
    assert "each half of the dimension of 8 by itself" in audit.kernelbench.tried
    assert audit.kernelbench.null == ()


def test_parameters_that_the_constructor_leaves_plain_are_seen_when_they_change(tmp_path: Path) -> None:
    """The bias begins as zeros: KernelBench's check cannot tell whether it is added."""
    source = LINEAR.replace("super().__init__()", "super().__init__(); self.b = nn.Parameter(torch.zeros(out))")
    source = source.replace("self.linear(x)", "self.linear(x) + self.b")
    audit = audited(tmp_path, source)
    assert "b taken as zeros" in audit.kernelbench.null
    assert "b taken as zeros" not in audit.hkbench.null


def test_a_loss_that_its_moments_tell_is_weak(tmp_path: Path) -> None:
    """With equal targets all the time the pairing does not matter."""
    source = module("x, y: (x - y * 0.0).square().mean()", "torch.rand(64, 8), torch.rand(64, 8)")
    audit = audited(tmp_path, source)
    # An input without any effect in exact arithmetic is no weakness of the check: nothing is left out.
    assert not any(name.startswith("input 1") for name in audit.hkbench.null)


def test_a_problem_is_halved_until_it_is_small(tmp_path: Path) -> None:
    source = module("x: F.relu(x)", "torch.rand(rows, *shape)", "rows = 4096\nshape = (8192,)\nkernel = 3\n")
    problem = problem_file(tmp_path, source)
    assert size_of(problem).elements == 2 * 4096 * 8192
    small, changed = shrunk(problem)
    assert size_of(small).elements < MAX_ELEMENTS
    assert changed.keys() == {"rows", "shape"}
    assert small.sha256 == problem.sha256


def test_what_cannot_be_made_small_is_refused(tmp_path: Path) -> None:
    problem = problem_file(tmp_path, module("x: x + 1", "torch.rand(4096, 4096)"))
    with pytest.raises(ProblemError, match="after halving"):
        shrunk(problem)
