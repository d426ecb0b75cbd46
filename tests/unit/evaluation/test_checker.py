"""How the outputs of a timed call are compared: with eager's own only where that could matter."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest
import torch

from hkbench.analysis import compare
from hkbench.analysis.reference import Leaves, Reference
from hkbench.evaluation import checker as checker_module
from hkbench.evaluation.checker import AllCloseChecker, Checker
from hkbench.evaluation.failures import CandidateFailed
from hkbench.problems import load_problem
from hkbench.records import FailureKind, SizeSet, Tolerance

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        {forward}


def get_inputs():
    return [torch.randn(64, 8)]


def get_init_inputs():
    return []
"""


class Checked(Checker):
    """A checker of one problem's outputs. Counts how often eager's own answer is asked for."""

    def __init__(self, folder: Path, forward: str) -> None:
        path = folder / "1_written.py"
        path.write_text(SOURCE.format(forward=forward))
        self.reference = Reference(load_problem(path), SizeSet.FULL, torch.device("cpu"), 1)
        self.asked = 0
        self.inputs = self.reference.inputs(3)
        self.native = self.reference.native(self.inputs)
        self.precise = self.reference.precise(self.inputs, self.native)
        form: Leaves = {path: leaf.to("meta") for path, leaf in tensors(self.native).items()}
        super().__init__(self.reference, self.ask, form, None)

    def ask(self, inputs: list[Any]) -> Leaves:
        self.asked += 1
        return self.reference.native(inputs)

    def answer(self, factor: float = 1.0) -> dict[str, torch.Tensor]:
        """Eager's own, `factor` times."""
        return {path: leaf * factor for path, leaf in tensors(self.native).items()}

    def first_trial(self, factor: float) -> None:
        self.check(self.answer(factor), self.native, self.precise, 1)


def tensors(leaves: Leaves) -> dict[str, torch.Tensor]:
    return {path: leaf for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor)}


def test_eager_is_asked_for_no_more_where_the_error_is_known(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return x.tanh(), x.relu()")
    checker.first_trial(1.0 + 1e-5)
    before = dict(checker.tolerances)
    checker.check_again(checker.answer(1.0 - 2e-6), checker.inputs)
    checker.check_again(checker.answer(), checker.inputs)
    assert checker.asked == 0 and checker.tolerances == before


def test_a_larger_error_goes_on_record_with_eager_s(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return x.tanh()")
    checker.first_trial(1.0 + 1e-6)
    ((path, before),) = checker.tolerances.items()
    checker.check_again(checker.answer(1.0 + 3e-5), checker.inputs)
    after = checker.tolerances[path]
    assert checker.asked == 1 and before.error is not None and after.error is not None
    assert after.error > 5 * before.error and after.eager_error == before.eager_error
    checker.check_again(checker.answer(1.0 + 2e-5), checker.inputs)
    assert checker.asked == 1 and checker.tolerances[path] == after


def test_a_tolerance_is_found_once_for_the_same_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = Checked(tmp_path, "return x.tanh(), x.argmax(-1)")
    known: dict[str, Tolerance] = {}
    one = checker.check(checker.answer(1), checker.native, checker.precise, 1, known)
    assert list(known) == ["output[0]"]
    monkeypatch.setattr(compare, "tolerance_for", None)
    assert checker.check(checker.answer(1), checker.native, checker.precise, 1, known) == one
    wrong = checker.answer(1)
    wrong["output[0]"][3, 3] += 0.1
    with pytest.raises(CandidateFailed):
        checker.check(wrong, checker.native, checker.precise, 1, known)


def test_a_wrong_answer_fails_as_in_a_trial(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return x.tanh()")
    checker.first_trial(1.0)
    for kind, change in ((FailureKind.WRONG_VALUES, 2.0), (FailureKind.NOT_FINITE, torch.nan)):
        got = checker.answer()
        got["output"][5, 3] = change
        with pytest.raises(CandidateFailed) as again:
            checker.check_again(got, checker.inputs)
        with pytest.raises(CandidateFailed) as trial:
            checker.check(got, checker.native, checker.precise, None)
        assert again.value.failure.message == trial.value.failure.message
        assert again.value.failure.kind is kind


def test_what_eager_widens_is_still_allowed(tmp_path: Path) -> None:
    """Eager cancels digits: its error is beyond the usual tolerance, and an honest one of that size passes."""
    checker = Checked(tmp_path, "return (x * 3e3 + 0.3) - x * 3e3")
    checker.first_trial(1.0)
    assert checker.tolerances["output"].widened_by_eager
    checker.check_again(checker.answer(), checker.inputs)
    assert checker.asked == 1


def test_an_overflow_that_eager_shares_is_still_excused(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return (x.abs() + 1.0) * 3e38")
    assert not bool(torch.isfinite(tensors(checker.native)["output"]).all())
    checker.first_trial(1.0)
    checker.check_again(checker.answer(), checker.inputs)
    assert checker.asked == 1


def test_places_are_compared_with_eager_s(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return x.argmax(-1)")
    checker.check_again(checker.answer(1), checker.inputs)
    assert checker.asked == 1
    got = checker.answer(1)
    got["output"][3] += 1
    with pytest.raises(CandidateFailed):
        checker.check_again(got, checker.inputs)


def test_a_reference_that_cannot_be_widened(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "assert x.dtype is torch.float32\n        return x.tanh()")
    assert checker.reference.precision == "native"
    checker.first_trial(1.0)
    checker.check_again(checker.answer(), checker.inputs)
    assert checker.asked == 1
    with pytest.raises(CandidateFailed):
        checker.check_again(checker.answer(1.01), checker.inputs)


def test_a_timed_call_is_held_against_the_baseline_s_answer(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return x.tanh(), x.argmax(-1)")
    checker.first_trial(1)
    checker.check_against(checker.answer(1), checker.answer(1), checker.inputs)
    assert checker.asked == 0
    for path, change in (("output[0]", 0.1), ("output[1]", 1)):
        got = checker.answer(1)
        got[path][3] += change
        with pytest.raises(CandidateFailed):
            checker.check_against(got, checker.answer(1), checker.inputs)


def test_a_baseline_that_differs_leaves_it_to_the_reference(tmp_path: Path) -> None:
    checker = Checked(tmp_path, "return x.tanh()")
    checker.first_trial(1.0)
    checker.check_against(checker.answer(), checker.answer(1.1), checker.inputs)


def test_of_a_large_output_a_drawn_stretch_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = Checked(tmp_path, "return x.tanh()")
    checker.first_trial(1.0)
    monkeypatch.setattr(checker_module, "WINDOW", 64)
    monkeypatch.setattr(secrets, "randbelow", lambda bound: bound - 1)
    got = checker.answer()
    got["output"][0, 0] += 1.0
    checker.check_against(got, checker.answer(), checker.inputs)
    got["output"][-1, -1] += 1.0
    with pytest.raises(CandidateFailed):
        checker.check_against(got, checker.answer(), checker.inputs)


@pytest.mark.parametrize(
    ("off", "right"), [(0.99e-4, True), (1.5e-4, False), (float("nan"), False)], ids=["within", "beyond", "NaN"]
)
def test_kernelbenchs_tolerance_is_absolute_beside_small_elements(off: float, right: bool, tmp_path: Path) -> None:
    """Ours goes by the root mean square, which a single large element raises."""
    ours = Checked(tmp_path, "return x * torch.eye(8)[0] * 1e3")
    form: Leaves = {path: leaf.to("meta") for path, leaf in tensors(ours.native).items()}
    theirs = AllCloseChecker(ours.reference, ours.reference.native, form, None)
    answer = tensors(ours.native)["output"].clone()
    answer[3, 5] += off
    for judge in (
        lambda: theirs.check({"output": answer}, ours.native, ours.native, 1),
        lambda: theirs.check_against({"output": answer}, tensors(ours.native), ours.inputs),
    ):
        if right:
            judge()
        else:
            with pytest.raises(CandidateFailed):
                judge()
    assert theirs.tolerances["output"].atol == 1e-4
