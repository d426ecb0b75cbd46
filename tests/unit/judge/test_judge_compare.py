"""Comparison of outputs: tolerances, places that are not finite, integers."""

from __future__ import annotations

import math

import pytest
import torch

from hkbench.judge import compare
from hkbench.judge.compare import WIDEST, compare_exact, compare_leaf, root_mean_square, settled, tolerance_for
from hkbench.judge.tolerances import RTOL_BY_NAME
from hkbench.records import Tolerance

NAN, INF = math.nan, math.inf
TENTH = Tolerance(dtype="float32", rtol=0.1)


def leaf(expected: list[float], got: list[float], tolerance: Tolerance = TENTH) -> compare.LeafResult:
    return compare_leaf("output", torch.tensor(expected).double(), torch.tensor(got).double(), tolerance)


@pytest.mark.parametrize(("error", "passes"), [(0.0, True), (0.199, True), (-0.199, True), (0.201, False)])
def test_the_edge_of_the_tolerance(error: float, passes: bool) -> None:
    """Four ones: the scale is 1, so 0.1 * (1 + 1) is allowed."""
    result = leaf([1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0 + error, 1.0])
    assert (result.mismatch is None) is passes
    assert result.worst == pytest.approx(abs(error) / 0.2)
    assert result.max_abs_error == pytest.approx(abs(error))


def test_zeros_are_compared_with_the_scale() -> None:
    assert leaf([0.0, 2.0], [0.1, 2.0]).mismatch is None
    assert leaf([0.0, 2.0], [0.2, 2.0]).mismatch is not None
    assert leaf([0.0, 0.0], [0.0, -0.0]).mismatch is None
    assert leaf([0.0, 0.0], [0.0, 1e-30]).worst == INF


def test_the_mismatch_names_the_worst_place_and_counts_all() -> None:
    expected = torch.ones(3, 4, 5)
    got = expected.clone()
    got[1, 2, 3], got[2, 0, 4], got[0, 0, 0] = 1.5, 4.0, 1.01
    found = compare_leaf("output[1]", expected, got, TENTH).mismatch
    assert found is not None
    assert (found.output, found.index, found.wrong_elements, found.elements) == ("output[1]", (2, 0, 4), 2, 60)
    assert (found.expected, found.got) == (1.0, 4.0)
    assert found.max_abs_error == 3.0 and found.max_rel_error == 3.0


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 8, 100])
def test_chunks_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(4)
    expected = torch.randn(8, 9, generator=generator)
    got = expected + 0.3 * torch.randn(8, 9, generator=generator)
    got[7, 8], got[3, 1] = NAN, 40.0
    whole = compare_leaf("output", expected, got, TENTH)
    monkeypatch.setitem(compare.CHUNKS, "cpu", chunk)
    parts = compare_leaf("output", expected, got, TENTH)
    assert parts.mismatch is not None and whole.mismatch is not None
    assert parts.mismatch.index == whole.mismatch.index == (7, 8)
    assert parts.mismatch.wrong_elements == whole.mismatch.wrong_elements
    assert parts.not_finite == whole.not_finite == 1
    assert parts.max_abs_error == whole.max_abs_error
    assert root_mean_square(expected) == pytest.approx(float(expected.double().square().mean().sqrt()))


@pytest.mark.parametrize(
    ("expected", "got", "passes", "not_finite"),
    [
        ([NAN, 1.0], [NAN, 1.0], True, 0),
        ([INF, -INF, 1.0], [INF, -INF, 1.0], True, 0),
        ([1.0, 1.0], [NAN, 1.0], False, 1),
        ([1.0, 1.0], [INF, -INF], False, 2),
        ([NAN, 1.0], [1.0, 1.0], False, 0),
        ([INF, 1.0], [-INF, 1.0], False, 0),
        ([INF, 1.0], [NAN, 1.0], False, 0),
        ([INF, 1.0], [3e38, 1.0], False, 0),
        ([NAN, NAN], [NAN, NAN], True, 0),
    ],
)
def test_what_is_not_finite_stays_in_its_place(
    expected: list[float], got: list[float], passes: bool, not_finite: int
) -> None:
    result = leaf(expected, got)
    assert (result.mismatch is None) is passes
    assert result.not_finite == not_finite
    if result.mismatch is not None:
        assert result.worst == INF


def test_an_empty_output_passes() -> None:
    result = compare_leaf("output", torch.empty(0, 3), torch.empty(0, 3), TENTH)
    assert (result.worst, result.mismatch) == (0.0, None)
    assert root_mean_square(torch.empty(0)) == 0.0
    assert compare_exact("output", *[torch.empty(0, dtype=torch.int64)] * 3) is None


def test_a_scalar_output_has_an_empty_index() -> None:
    found = compare_leaf("output", torch.tensor(1.0), torch.tensor(2.0), TENTH).mismatch
    assert found is not None and found.index == ()


def test_complex_numbers_are_compared_by_parts() -> None:
    expected = torch.tensor([1 + 1j, 2 - 1j])
    assert compare_leaf("output", expected, expected.clone(), TENTH).mismatch is None
    found = compare_leaf("output", expected, torch.tensor([1 + 1j, 2 + 5j]), TENTH).mismatch
    assert found is not None
    assert (found.index, found.expected, found.got) == ((1, 1), -1.0, 5.0)


@pytest.mark.parametrize("name", RTOL_BY_NAME)
def test_eager_within_half_of_the_tolerance_leaves_it(name: str) -> None:
    native = torch.tensor([1.0, 2.0, -4.0]).to(getattr(torch, name))
    tolerance = tolerance_for(native, native.to(torch.complex128 if native.is_complex() else torch.float64), "output")
    assert (tolerance.dtype, tolerance.rtol, tolerance.widened_by_eager) == (name, RTOL_BY_NAME[name], False)


def test_eager_s_own_error_widens_the_tolerance() -> None:
    precise = torch.ones(100, dtype=torch.float64)
    rtol = RTOL_BY_NAME["float32"]
    native = (precise + 3 * rtol).float()  # 1.5 times the 2 * rtol that is allowed
    tolerance = tolerance_for(native, precise, "output")
    assert tolerance.widened_by_eager
    assert tolerance.rtol == pytest.approx(3 * rtol, rel=0.01)
    assert compare_leaf("output", precise, native, tolerance).worst == pytest.approx(0.5, rel=0.01)


def test_the_widening_has_a_cap_and_needs_numbers() -> None:
    precise = torch.ones(100, dtype=torch.float64)
    far = tolerance_for((precise + 1.0).float(), precise, "output")
    assert far.rtol == pytest.approx(WIDEST * RTOL_BY_NAME["float32"])
    broken = (precise * INF).float()
    assert not tolerance_for(broken, precise, "output").widened_by_eager


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    eager = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    assert compare_exact("output", eager, eager, eager.clone()) is None
    got = eager.clone()
    got[1, 0] = 0
    found = compare_exact("output", eager, eager, got)
    assert found is not None
    assert (found.index, found.wrong_elements, found.elements) == ((1, 0), 1, 4)
    assert (found.expected, found.got) == (1, 0)


def test_a_large_integer_loses_no_digit() -> None:
    eager = torch.tensor([2**53 + 1])
    found = compare_exact("output", eager, eager, torch.tensor([2**53]))
    assert found is not None and (found.expected, found.got) == (2**53 + 1, 2**53)


def test_a_tie_may_be_broken_as_either_precision_does() -> None:
    eager, precise = torch.tensor([4, 7, 1]), torch.tensor([4, 9, 1])
    assert compare_exact("output", eager, precise, torch.tensor([4, 9, 1])) is None
    assert compare_exact("output", eager, precise, torch.tensor([4, 7, 1])) is None
    assert compare_exact("output", eager, precise, torch.tensor([4, 8, 1])) is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float8_e5m2])
def test_an_overflow_of_eager_s_may_be_shared_or_avoided(dtype: torch.dtype) -> None:
    native = torch.tensor([1.0, INF, NAN, 2.0]).to(dtype)
    precise = torch.tensor([1.0, 3.0, 5.0, 2.0])
    for got in ([1.0, INF, NAN, 2.0], [1.0, 3.0, 5.0, 2.0], [1.0, INF, 5.0, 2.0]):
        answer = torch.tensor(got).to(dtype)
        assert compare_leaf("output", settled(native, precise, answer), answer, TENTH).mismatch is None
    for got in ([1.0, -INF, NAN, 2.0], [INF, INF, NAN, 2.0], [1.0, INF, NAN, 4.0]):
        answer = torch.tensor(got).to(dtype)
        assert compare_leaf("output", settled(native, precise, answer), answer, TENTH).mismatch is not None


def test_finite_answers_need_no_settling() -> None:
    precise = torch.ones(3)
    assert settled(torch.ones(3), precise, torch.zeros(3)) is precise
