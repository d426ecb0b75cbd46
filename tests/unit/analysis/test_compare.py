"""Comparison of outputs: tolerances, places that are not finite, integers."""

from __future__ import annotations

import math

import pytest
import torch

from hkbench.analysis import compare
from hkbench.analysis.compare import (
    compare_exact,
    compare_leaf,
    compare_output,
    root_mean_square,
    settled,
    tolerance_for,
)
from hkbench.analysis.tolerances import RTOL_BY_NAME, WIDEST
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


def test_where_eager_itself_is_far_off_in_a_few_elements_no_more_is_asked_for() -> None:
    precise = torch.linspace(1.0, 2.0, 20_000, dtype=torch.float64)
    native = precise.to(torch.bfloat16)
    native[7] = 9.0

    def mismatch(place: int, value: float, eager: torch.Tensor = native) -> bool:
        answer = precise.to(torch.bfloat16)
        answer[place] = value
        return compare_output("output", eager, precise, answer)[0].mismatch is not None

    assert not mismatch(7, 9.0)
    assert not mismatch(7, -12.0)
    assert mismatch(7, 20.0)
    assert mismatch(7, NAN)
    assert mismatch(8, 9.0), "eager is right there"
    assert mismatch(7, 9.0, torch.where(precise < 1.01, 9.0, precise).to(torch.bfloat16)), "too many to be an accident"


@pytest.mark.parametrize("turned", [False, True])
def test_a_few_elements_on_a_line_of_large_ones_are_held_to_its_size(turned: bool) -> None:
    precise = torch.full((300, 200), 0.03, dtype=torch.float64)
    precise[7] = torch.linspace(-1.5, 1.5, 200, dtype=torch.float64)

    def mismatch(row: int, error: float, count: int = 1) -> bool:
        answer = precise.clone()
        answer[row, 100 : 100 + count] += error
        want, have = (precise.mT, answer.mT) if turned else (precise, answer)
        return compare_output("output", want.bfloat16(), want, have.bfloat16())[0].mismatch is not None

    assert not mismatch(7, 0.01), "a hundredth of what the row holds"
    assert mismatch(7, 0.03)
    assert mismatch(7, NAN)
    assert mismatch(7, 0.01, count=8), "too many to be an accident"
    assert mismatch(8, 0.01), "its row is as small as the others"


def plain_rms(expected: torch.Tensor) -> float:
    finite = [abs(value) for value in expected.double().flatten().tolist() if math.isfinite(value)]
    top = max(finite, default=0.0)
    return top * math.sqrt(math.fsum((value / top) ** 2 for value in finite) / len(finite)) if top else 0.0


def plain_worst(expected: torch.Tensor, got: torch.Tensor, rtol: float) -> tuple[float, float, int, int]:
    """The largest error over its tolerance, the largest error, new NaN and Inf, wrong elements: one by one."""
    if expected.is_complex():
        expected, got = torch.view_as_real(expected), torch.view_as_real(got)
    scale = plain_rms(expected)
    worst, largest, not_finite, wrong = 0.0, 0.0, 0, 0
    for want, have in zip(expected.double().flatten().tolist(), got.double().flatten().tolist(), strict=True):
        not_finite += math.isfinite(want) and not math.isfinite(have)
        if want == have or (math.isnan(want) and math.isnan(have)):
            continue
        ratio = INF
        if math.isfinite(want) and math.isfinite(have):
            allowed = rtol * (abs(want) + scale)
            ratio = abs(have - want) / allowed if allowed else INF
            largest = max(largest, abs(have - want))
        worst, wrong = max(worst, ratio), wrong + (ratio > 1.0)
    return worst, largest, not_finite, wrong


ODD = {
    "nothing": [],
    "zeros": [0.0, -0.0],
    "nan": [NAN],
    "inf": [INF, -INF],
    "all": [NAN, INF, -INF, 0.0, -0.0],
}


def drawn(generator: torch.Generator, odd: list[float], factor: float, dtype: torch.dtype) -> torch.Tensor:
    """7 x 6 normal numbers, some replaced, in a transposed layout."""
    values = factor * torch.randn(6, 7, generator=generator, dtype=torch.float64).T
    for value in odd:
        values[torch.rand(values.shape, generator=generator) < 0.1] = value
    return torch.complex(values, values.flip(0)).to(dtype) if dtype.is_complex else values.to(dtype)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("chunk", [5, 1 << 19])
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.complex64]
)
def test_the_figures_are_those_of_a_loop(
    dtype: torch.dtype, chunk: int, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compare.CHUNKS, "cpu", chunk)
    generator = torch.Generator().manual_seed(11)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    for error in (0.0, 1e-9, 1e-5, 1e-3, 0.05, 0.3, 2.0):
        precise = drawn(generator, ODD[odd], 1.0, wide)
        noise = torch.randn(precise.shape, generator=generator, dtype=torch.float64)
        native = (precise * (1.0 + error * noise)).to(dtype)
        got = (precise * (1.0 - error * noise)).to(dtype)
        if error == 0.05:
            got[2, 3] = NAN
        if error == 0.3:
            native[1, 1], got[1, 1] = INF, INF  # an overflow that eager shares

        rtol = compare.RTOL[dtype]
        eager = plain_worst(precise, native, rtol)[0]
        widened = 0.5 < eager < INF
        allowed = rtol * min(2.0 * eager, WIDEST) if widened else rtol
        result, tolerance = compare.compare_output("output", native, precise, got)
        assert tolerance is not None and tolerance.widened_by_eager is widened
        assert tolerance.rtol == pytest.approx(allowed, rel=1e-12)

        shared = ~torch.isfinite(native) & ((got == native) | (torch.isnan(got) & torch.isnan(native)))
        worst, largest, not_finite, wrong = plain_worst(torch.where(shared, native.to(wide), precise), got, allowed)
        assert result.worst == pytest.approx(worst, rel=1e-12)
        assert (result.mismatch is None) is (wrong == 0)
        if result.mismatch is not None:
            assert (result.mismatch.wrong_elements, result.not_finite) == (wrong, not_finite)
        if result.mismatch is None or not not_finite:
            assert result.max_abs_error == pytest.approx(largest, rel=1e-12)
        plainly = compare.plainly_right(precise, got)
        strict = plain_worst(precise, got, rtol)
        if torch.isfinite(precise).all():
            assert (plainly is not None) is (strict[0] <= 1.0)
        if plainly is not None:
            assert strict[0] <= 1.0
            assert result.mismatch is None  # whatever eager's own error is
            assert plainly.worst == pytest.approx(strict[0], rel=1e-12)
            assert plainly.max_abs_error == pytest.approx(strict[1], rel=1e-12)
        for limit in (0.1, 0.5, 5.0):
            within = compare.worst_within(limit, "output", precise, native, tolerance.model_copy(update={"rtol": rtol}))
            assert within is (eager <= limit)


@pytest.mark.parametrize("factor", [0.0, 5e-324, 1e-300, 1e-160, 1e-145, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("odd", ODD)
def test_the_scale_neither_overflows_nor_vanishes(odd: str, factor: float) -> None:
    generator = torch.Generator().manual_seed(5)
    values = drawn(generator, ODD[odd], factor, torch.float64)
    assert root_mean_square(values) == pytest.approx(plain_rms(values), rel=1e-12, abs=0.0)
    assert root_mean_square(torch.full((9,), NAN)) == root_mean_square(torch.full((9,), -INF)) == 0.0


def test_a_bound_decides_only_what_the_figure_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is beyond half of what a zero is allowed, and within half of what is allowed where it occurs."""
    precise = torch.tensor([3.0, 4.0, 0.0, 0.0], dtype=torch.float64)  # rms 2.5
    native = precise + torch.tensor([0.0, 0.2, 0.0, 0.0])
    assert compare.worst_within(0.5, "output", precise, native, TENTH)  # 0.2 / 6.5 / 0.1 = 0.31; 0.2 / 2.5 / 0.1 = 0.8
    assert not compare.worst_within(0.3, "output", precise, native, TENTH)
    monkeypatch.setattr(compare, "compare_leaf", None)
    assert compare.worst_within(0.81, "output", precise, native, TENTH)


def test_another_tolerance_and_what_is_kept_of_the_errors() -> None:
    precise = torch.ones(100, dtype=torch.float64)
    native = (precise * (1.0 + 1e-6)).float()
    usual = tolerance_for(native, precise, "output")
    assert usual.eager_error == pytest.approx(5e-7, rel=0.1)
    bound = tolerance_for(native, precise, "output", scale=compare.Scale(precise))
    assert bound.eager_error == pytest.approx(1e-6, rel=0.1)  # by one pass, which leaves |expected| out
    tighter = tolerance_for(native, precise, "output", changed={"float32": 4e-7})
    assert tighter.eager_error == pytest.approx(5e-7, rel=0.1)
    assert tighter.plain_rtol == 4e-7 and tighter.widened_by_eager and tighter.rtol == pytest.approx(1e-6, rel=0.1)
    other = tolerance_for(native, precise, "output", changed={"float16": 1e-6})
    assert other.rtol == RTOL_BY_NAME["float32"]


@pytest.mark.parametrize("chunk", [2, 1 << 19])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equal_answers_need_no_scale(dtype: torch.dtype, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compare.CHUNKS, "cpu", chunk)
    native = torch.tensor([0.0, -0.0, INF, -INF, 1.5, 3.0, -4.0]).to(dtype)
    precise = native.double()
    measured, asked = compare.root_mean_square, []

    def counted(expected: torch.Tensor) -> float:
        asked.append(expected)
        return measured(expected)

    monkeypatch.setattr(compare, "root_mean_square", counted)
    for got in (native.clone(), -native.neg()):
        result, tolerance = compare.compare_output("output", native, precise, got)
        assert (result.worst, result.max_abs_error, result.mismatch) == (0.0, 0.0, None)
        assert tolerance is not None and (tolerance.eager_error, tolerance.widened_by_eager) == (0.0, False)
    assert not asked
    got = native.clone()
    got[6] = -5.0
    result, _ = compare.compare_output("output", native, precise, got)
    assert result.mismatch is not None and result.mismatch.index == (6,) and asked


def test_an_error_after_equal_parts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the first, of the second and of the last part, of which all others are equal."""
    monkeypatch.setitem(compare.CHUNKS, "cpu", 4)
    precise = torch.arange(1.0, 11.0, dtype=torch.float64)
    for place in (1, 6, 9):
        for bad in (3.0, NAN, INF, -INF):
            got = precise.float()
            got[place] = bad
            assert compare.plainly_right(precise, got) is None
            result, _ = compare.compare_output("output", precise.float(), precise, got)
            assert result.mismatch is not None and result.mismatch.index == (place,)
            assert result.not_finite == (0 if bad == 3.0 else 1)
    for other in (INF, -INF, NAN):
        got = precise.float()
        got[6] = other
        expected = precise.clone()
        expected[6] = INF
        passes = compare.compare_output("output", expected.float(), expected, got)[0].mismatch is None
        assert passes is (other == INF)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_what_is_compared_exactly_is_never_plainly_right(dtype: torch.dtype) -> None:
    values = torch.ones(3, dtype=dtype)
    assert compare.plainly_right(values, values.clone()) is None


def test_a_precise_answer_in_whole_numbers_loses_no_digit() -> None:
    """2^24 + 1 is no float32: compared as one, it would be equal to 2^24."""
    precise = torch.tensor([2**24 + 1, 2**24 + 1])
    got = torch.tensor([2.0**24, 2.0**24])
    assert compare_leaf("output", precise, got, TENTH).max_abs_error == 1.0
