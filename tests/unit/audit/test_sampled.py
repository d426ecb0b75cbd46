"""Answers from a part of the numbers: they are made as said, pass KernelBench's check of a loss, and not ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.small_problems import problem_of_forward

from hkbench.audit.audit import audit_problem
from hkbench.audit.controls import Trial
from hkbench.audit.records import ProblemAudit
from hkbench.audit.sampled import PARTS, input_parts, statistic_parts
from hkbench.records import SizeSet

READ = {
    "three quarters": [0, 1, 2, 3, 4, 5, 0, 1],
    "every second": [0, 0, 2, 2, 4, 4, 6, 6],
    "the first half": [0, 1, 2, 3] * 2,
}


def audited(folder: Path, forward: str, inputs: str) -> ProblemAudit:
    return audit_problem(problem_of_forward(folder, forward, inputs), SizeSet.CPU, torch.device("cpu"), 5)


def test_what_is_read_stands_in_for_the_rest() -> None:
    x = torch.arange(8.0)
    made = {control.name: control for control in input_parts([x])}
    for name, places in READ.items():
        for control in (made[f"{name} of the input"], made[f"{name} of the dimension of 8"]):
            answer = control.make(Trial([x], {}, {}), lambda inputs: {"output": inputs[0]})
            assert answer is not None and answer["output"].tolist() == places  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        (lambda x: x.mean(), 2.5),
        (lambda x: x.sum(), 20.0),
        (lambda x: x.sum(-1), 20.0),
        (lambda x: x.norm(), (55.0 * 8 / 6) ** 0.5),
        (lambda x: torch.linalg.vector_norm(x, 2, -1), (55.0 * 8 / 6) ** 0.5),
        (lambda x: x.var(correction=0), torch.arange(6.0).var(correction=0).item()),
        (lambda x: x.log_softmax(-1)[0], -(torch.arange(6.0).exp().sum() * 8 / 6).log().item()),
        (lambda x: torch.nn.functional.mse_loss(x, 0 * x, reduction="sum"), 55.0 * 8 / 6),
        (lambda x: torch.nn.functional.layer_norm(x[None], (8,))[0, 0], -2.5 / (35 / 12 + 1e-5) ** 0.5),
    ],
)
def test_a_statistic_is_that_of_three_quarters(what: object, wanted: float) -> None:
    x = torch.arange(8.0)
    control = next(iter(statistic_parts()))
    answer = control.make(Trial([x], {}, {}), lambda inputs: {"output": what(inputs[0])})  # type: ignore[operator]
    assert answer is not None
    assert float(answer["output"]) == pytest.approx(wanted, rel=1e-5)  # type: ignore[arg-type]


def test_a_loss_from_a_part_passes_kernelbench_s_check_alone(tmp_path: Path) -> None:
    numbers = "torch.rand(512, 512, dtype=torch.bfloat16)"
    audit = audited(tmp_path, "a, b: F.mse_loss(a.float(), b.float()).to(a.dtype)", f"{numbers}, {numbers}")
    parts = {f"{name} of the input" for name in PARTS} | {f"statistics of {name} of the elements" for name in PARTS}
    assert parts <= set(audit.kernelbench.null)
    assert not parts & set(audit.hkbench.null)


def test_a_statistic_that_no_element_moves_is_weak(tmp_path: Path) -> None:
    audit = audited(tmp_path, "x: torch.tanh(x).mean()", "torch.rand(1024, 512, dtype=torch.float32).bfloat16()")
    assert any(name.startswith("three quarters of the") for name in audit.hkbench.null)


def test_work_on_each_row_by_itself_cannot_do_without_rows(tmp_path: Path) -> None:
    audit = audited(tmp_path, "x: x.softmax(-1)", "torch.randn(16, 64)")
    assert {"every second of the dimension of 16", "statistics of the first half of the elements"} <= set(
        audit.hkbench.tried
    )
    assert audit.hkbench.null == ()
