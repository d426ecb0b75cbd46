"""The form of outputs as a runner describes it, which may be anything."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hkbench.evaluation.form import FREE_PLACES, MAX_SPREAD, form_mismatch
from hkbench.records import FailureKind

NATIVE: dict[str, object] = {"output[0]": torch.zeros(2, 3), "output[1]": 7}
GOOD: dict[str, Any] = {
    "path": "output[0]",
    "type": "Tensor",
    "dtype": "float32",
    "shape": [2, 3],
    "strides": [3, 1],
    "device": "cpu",
}
NUMBER = {"path": "output[1]", "type": "int", "value": 7}


def test_the_right_form() -> None:
    assert form_mismatch([GOOD, NUMBER], NATIVE, "cpu", may_share=False) is None
    assert form_mismatch([GOOD | {"strides": [1, 2]}, NUMBER], NATIVE, "cpu", may_share=False) is None


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"type": "Parameter"}, FailureKind.WRONG_TYPE),
        ({"type": None}, FailureKind.WRONG_TYPE),
        ({"dtype": "float16"}, FailureKind.WRONG_DTYPE),
        ({"dtype": ["float32"]}, FailureKind.WRONG_DTYPE),
        ({"shape": [3, 2]}, FailureKind.WRONG_SHAPE),
        ({"shape": "2, 3"}, FailureKind.WRONG_SHAPE),
        ({"device": "cuda"}, FailureKind.WRONG_TYPE),
        ({"strides": [0, 1]}, FailureKind.WRONG_STRIDES),
        ({"strides": [3, 0]}, FailureKind.WRONG_STRIDES),
        ({"strides": []}, FailureKind.WRONG_STRIDES),
        ({"strides": None}, FailureKind.WRONG_STRIDES),
        ({"strides": ["a", 1]}, FailureKind.WRONG_STRIDES),
        ({"strides": [[], {}]}, FailureKind.WRONG_STRIDES),
        ({"strides": [-3, 1]}, FailureKind.WRONG_STRIDES),
        ({"strides": [True, 1]}, FailureKind.WRONG_STRIDES),
        ({"strides": [FREE_PLACES, 1]}, FailureKind.WRONG_STRIDES),
        ({"strides": [10**4000, 1]}, FailureKind.WRONG_STRIDES),
        ({"path": "output"}, FailureKind.WRONG_TYPE),
    ],
)
def test_a_tensor_of_another_form(change: dict[str, Any], kind: FailureKind) -> None:
    found = form_mismatch([GOOD | change, NUMBER], NATIVE, "cpu", may_share=False)
    assert found is not None and found[0] is kind, found


@pytest.mark.parametrize(
    ("described", "kind"),
    [
        (None, FailureKind.PROTOCOL),
        ("leaves", FailureKind.PROTOCOL),
        ([GOOD, 3], FailureKind.PROTOCOL),
        ([], FailureKind.WRONG_TYPE),
        ([GOOD], FailureKind.WRONG_TYPE),
        ([NUMBER, GOOD], FailureKind.WRONG_TYPE),
        ([GOOD, NUMBER | {"value": 8}], FailureKind.WRONG_VALUES),
        ([GOOD, NUMBER | {"type": "float", "value": 7.0}], FailureKind.WRONG_TYPE),
    ],
)
def test_another_structure(described: object, kind: FailureKind) -> None:
    found = form_mismatch(described, NATIVE, "cpu", may_share=False)
    assert found is not None and found[0] is kind


def test_how_far_an_output_may_be_spread() -> None:
    rows = FREE_PLACES
    native: dict[str, object] = {"output": torch.empty(rows, 2, device="meta")}
    whole = GOOD | {"path": "output", "shape": [rows, 2]}

    def found(*strides: int) -> object:
        return form_mismatch([whole | {"strides": list(strides)}], native, "cpu", may_share=False)

    assert found(2 * MAX_SPREAD, 1) is None
    assert found(2 * MAX_SPREAD + 1, 1) is not None
    assert found(1, MAX_SPREAD * rows) is None
    small: dict[str, object] = {"output[0]": torch.zeros(2, 3)}
    assert form_mismatch([GOOD | {"strides": [FREE_PLACES - 3, 1]}], small, "cpu", may_share=False) is None


def test_an_expanded_reference_asks_for_no_strides() -> None:
    native: dict[str, object] = {"output[0]": torch.zeros(3).expand(2, 3)}
    assert form_mismatch([GOOD | {"strides": ["a", 1]}], native, "cpu", may_share=False) is not None
    assert form_mismatch([GOOD | {"strides": [0, 1]}], native, "cpu", may_share=False) is None
    assert form_mismatch([GOOD], native, "cpu", may_share=False) is None


@pytest.mark.parametrize(("shares", "words"), [("input", "memory of an input"), ("earlier", "result before it")])
def test_outputs_lie_in_memory_of_their_own(shares: str, words: str) -> None:
    found = form_mismatch([GOOD | {"shares": shares}, NUMBER], NATIVE, "cpu", may_share=False)
    assert found is not None
    assert found[0] is FailureKind.ALIASED_OUTPUT
    assert words in found[1]
    assert form_mismatch([GOOD | {"shares": shares}, NUMBER], NATIVE, "cpu", may_share=True) is None
