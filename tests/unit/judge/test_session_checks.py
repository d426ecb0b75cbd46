"""How the outputs of a timed call are compared: with eager's own only where that could matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hkbench.judge import compare
from hkbench.judge.failures import CandidateFailed
from hkbench.judge.reference import Leaves, Reference
from hkbench.judge.session import Session
from hkbench.problems import load_problem
from hkbench.records import FailureKind, JudgeSettings, SizeSet, Tolerance

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


class Checked(Session):
    """What a session needs to compare, without runners. Counts how often eager's own answer is asked for."""

    def __init__(self, folder: Path, forward: str) -> None:
        path = folder / "1_written.py"
        path.write_text(SOURCE.format(forward=forward))
        self.reference = Reference(load_problem(path), SizeSet.FULL, torch.device("cpu"), 1)
        self.settings = JudgeSettings()
        self.tolerances: dict[str, Tolerance] = {}
        self.asked = 0
        self.inputs = self.reference.inputs(3)
        self.native = self.reference.native(self.inputs)
        self.precise = self.reference.precise(self.inputs, self.native)
        self._form = {path: leaf.to("meta") for path, leaf in tensors(self.native).items()}

    def run_reference(self, inputs: list[Any]) -> Leaves:
        self.asked += 1
        return super().run_reference(inputs)

    def answer(self, factor: float = 1.0) -> dict[str, torch.Tensor]:
        """Eager's own, `factor` times."""
        return {path: leaf * factor for path, leaf in tensors(self.native).items()}

    def first_trial(self, factor: float) -> None:
        self.check(self.answer(factor), self.native, self.precise, 1)


def tensors(leaves: Leaves) -> dict[str, torch.Tensor]:
    return {path: leaf for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor)}


def test_eager_is_asked_for_no_more_where_the_error_is_known(tmp_path: Path) -> None:
    session = Checked(tmp_path, "return x.tanh(), x.relu()")
    session.first_trial(1.0 + 1e-5)
    before = dict(session.tolerances)
    session.check_again(session.answer(1.0 - 2e-6), session.inputs)
    session.check_again(session.answer(), session.inputs)
    assert session.asked == 0 and session.tolerances == before


def test_a_larger_error_goes_on_record_with_eager_s(tmp_path: Path) -> None:
    session = Checked(tmp_path, "return x.tanh()")
    session.first_trial(1.0 + 1e-6)
    ((path, before),) = session.tolerances.items()
    session.check_again(session.answer(1.0 + 3e-5), session.inputs)
    after = session.tolerances[path]
    assert session.asked == 1 and before.error is not None and after.error is not None
    assert after.error > 5 * before.error and after.eager_error == before.eager_error
    session.check_again(session.answer(1.0 + 2e-5), session.inputs)
    assert session.asked == 1 and session.tolerances[path] == after


def test_a_tolerance_is_found_once_for_the_same_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Checked(tmp_path, "return x.tanh(), x.argmax(-1)")
    known: dict[str, Tolerance] = {}
    one = session.check(session.answer(1), session.native, session.precise, 1, known)
    assert list(known) == ["output[0]"]
    monkeypatch.setattr(compare, "tolerance_for", None)
    assert session.check(session.answer(1), session.native, session.precise, 1, known) == one
    wrong = session.answer(1)
    wrong["output[0]"][3, 3] += 0.1
    with pytest.raises(CandidateFailed):
        session.check(wrong, session.native, session.precise, 1, known)


def test_a_wrong_answer_fails_as_in_a_trial(tmp_path: Path) -> None:
    session = Checked(tmp_path, "return x.tanh()")
    session.first_trial(1.0)
    for kind, change in ((FailureKind.WRONG_VALUES, 2.0), (FailureKind.NOT_FINITE, torch.nan)):
        got = session.answer()
        got["output"][5, 3] = change
        with pytest.raises(CandidateFailed) as again:
            session.check_again(got, session.inputs)
        with pytest.raises(CandidateFailed) as trial:
            session.check(got, session.native, session.precise, None)
        assert again.value.failure.message == trial.value.failure.message
        assert again.value.failure.kind is kind


def test_what_eager_widens_is_still_allowed(tmp_path: Path) -> None:
    """Eager cancels digits: its error is beyond the usual tolerance, and an honest one of that size passes."""
    session = Checked(tmp_path, "return (x * 3e3 + 0.3) - x * 3e3")
    session.first_trial(1.0)
    assert session.tolerances["output"].widened_by_eager
    session.check_again(session.answer(), session.inputs)
    assert session.asked == 1


def test_an_overflow_that_eager_shares_is_still_excused(tmp_path: Path) -> None:
    session = Checked(tmp_path, "return (x.abs() + 1.0) * 3e38")
    assert not bool(torch.isfinite(tensors(session.native)["output"]).all())
    session.first_trial(1.0)
    session.check_again(session.answer(), session.inputs)
    assert session.asked == 1


def test_places_are_compared_with_eager_s(tmp_path: Path) -> None:
    session = Checked(tmp_path, "return x.argmax(-1)")
    session.check_again(session.answer(1), session.inputs)
    assert session.asked == 1
    got = session.answer(1)
    got["output"][3] += 1
    with pytest.raises(CandidateFailed):
        session.check_again(got, session.inputs)


def test_a_reference_that_cannot_be_widened(tmp_path: Path) -> None:
    session = Checked(tmp_path, "assert x.dtype is torch.float32\n        return x.tanh()")
    assert session.reference.precision == "native"
    session.first_trial(1.0)
    session.check_again(session.answer(), session.inputs)
    assert session.asked == 1
    with pytest.raises(CandidateFailed):
        session.check_again(session.answer(1.01), session.inputs)
