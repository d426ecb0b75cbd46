"""Compare outputs with what is expected, leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch

from hkbench.analysis import fused
from hkbench.analysis.domains import all_finite
from hkbench.analysis.tolerances import RTOL_BY_NAME, WIDEST, kernelbench_tolerance
from hkbench.records import Mismatch, Tolerance

#: Elements compared at a time: on a CPU so few that the float64 copies stay in its cache (six times as fast), on a GPU
#: so many that launches do not count, and not so many that the copies fill its memory.
CHUNKS = {"cpu": 1 << 19, "cuda": 1 << 25}

RTOL = {getattr(torch, name): rtol for name, rtol in RTOL_BY_NAME.items()}
#: Dtypes that an operator widens as it reads them, exactly: no float64 copy of them is made to compare or to subtract.
_WIDENED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
#: Of an output's elements that eager or a candidate may compute worse than the tolerance allows, where rounding alone
#: explains it. Of more, the problem or the candidate is to blame.
EXCUSED_SHARE = 1e-4
MIN_EXCUSING = 10_000  #: elements: of fewer, even one is too large a share
LINE_ELEMENTS = 1 << 22  #: looked at in one go for the size of the lines on which such elements lie
MIN_NORM = 1e-140  #: of a smaller one, squares of elements may have vanished


@dataclass
class LeafResult:
    """`worst` is the largest error over its tolerance (1 passes); `not_finite` counts NaN/Inf for a number."""

    worst: float
    max_abs_error: float | None
    not_finite: int
    mismatch: Mismatch | None


class Scale:
    """rms(expected), which costs a pass: found when it is first asked for, which answers without any error never do."""

    def __init__(self, expected: torch.Tensor) -> None:
        self._expected = expected

    @cached_property
    def value(self) -> float:
        return root_mean_square(self._expected)


def root_mean_square(expected: torch.Tensor) -> float:
    """Return the root mean square of the finite elements; 0 for an empty tensor."""
    parts = _parts(expected)
    if not parts:
        return 0.0
    if fused.covers(expected):
        norm = fused.norm(expected)
    else:
        norm = math.hypot(*torch.stack([_norm(part.double()) for part in parts]).tolist())
    if MIN_NORM < norm < math.inf:
        return norm / math.sqrt(expected.numel())
    return _scaled_root_mean_square(expected)  # zeros alone, something that is not finite, or squares out of range


def _norm(part: torch.Tensor) -> torch.Tensor:
    """Return the 2-norm.

    On a CPU vector_norm sums in few running sums, which costs three digits; on a GPU dot costs a start of cuBLAS.
    """
    return torch.dot(part, part).sqrt() if part.device.type == "cpu" else torch.linalg.vector_norm(part)


def _scaled_root_mean_square(expected: torch.Tensor) -> float:
    largest = max((float(part.max()) for part in _magnitudes(expected) if part.numel()), default=0.0)
    if not largest:
        return 0.0
    # Divided by the largest: the square of a large float64 would overflow, and an infinite scale would pass anything.
    total, count = 0.0, 0
    for part in _magnitudes(expected):
        scaled = part.div_(largest)
        total += float(torch.dot(scaled, scaled))
        count += part.numel()
    return largest * math.sqrt(total / count)


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the tensor's elements, a part at a time; none of an empty tensor."""
    return tuple(part for part in tensor.reshape(-1).split(CHUNKS[tensor.device.type]) if part.numel())


def _magnitudes(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the absolute values of the finite elements in float64, a part at a time, each a new tensor."""
    for part in _parts(tensor):
        wide = part.to(torch.float64, copy=True).abs_()
        # One pass in place of a selection, which costs ten: only an odd tensor holds anything that is not finite.
        yield wide if math.isfinite(float(wide.sum())) else wide[torch.isfinite(wide)]


def tolerance_for(
    native: torch.Tensor,
    precise: torch.Tensor,
    path: str,
    scale: Scale | None = None,
    changed: Mapping[str, float] | None = None,
) -> Tolerance:
    """Return the tolerance of one floating output. `changed`: rtol by dtype where it is not `RTOL`'s.

    With the `scale` of `precise`, fewer passes find out that eager is well within the tolerance.

    Eager PyTorch has to pass by a factor of two: where its own error against the precise reference is more than half of
    the tolerance (long sums in half precision), the tolerance grows to twice eager's error, up to `WIDEST` times.
    """
    plain = plain_tolerance(native.dtype, changed)
    rtol = plain.rtol
    eager = _bound(precise, native, plain, scale)
    if eager > 0.5 and scale is not None:
        eager = largest_over(precise, native, rtol, scale)
    if not math.isfinite(eager):
        eager = compare_leaf(path, precise, native, plain, scale).worst
    if not math.isfinite(eager):
        return plain
    found = plain.model_copy(update={"eager_error": eager * rtol})
    if eager <= 0.5:
        return found
    return found.model_copy(update={"rtol": rtol * min(2.0 * eager, WIDEST), "widened_by_eager": True})


def plain_tolerance(dtype: torch.dtype, changed: Mapping[str, float] | None = None) -> Tolerance:
    """Return the tolerance of a floating dtype before eager's error is known; `changed` as in `tolerance_for`."""
    name = str(dtype).removeprefix("torch.")
    rtol = (changed or {}).get(name, RTOL[dtype])
    return Tolerance(dtype=name, rtol=rtol, plain_rtol=rtol)


def compare_leaf(
    path: str, expected: torch.Tensor, got: torch.Tensor, tolerance: Tolerance, scale: Scale | None = None
) -> LeafResult:
    """Compare a leaf by |got - expected| <= rtol * (|expected| + rms(expected)).

    NaN and Inf have to be where they are expected.

    `scale` is that of `expected`, where it may be known already.
    """
    if expected.is_complex():
        return compare_leaf(f"{path}.view_as_real", torch.view_as_real(expected), torch.view_as_real(got), tolerance)
    scale = scale or Scale(expected)
    return _all_within(expected, got, tolerance, scale) or _worst_of(path, expected, got, tolerance, scale.value)


def kernelbench_tolerance_for(dtype: torch.dtype, changed: Mapping[str, float] | None = None) -> Tolerance:
    """Return KernelBench's tolerance for outputs of a dtype; `changed` as in `tolerance_for`, for atol and rtol."""
    name = str(dtype).removeprefix("torch.")
    rtol = (changed or {}).get(name, kernelbench_tolerance(name))
    return Tolerance(dtype=name, rtol=rtol, plain_rtol=rtol, atol=rtol)


def all_close(native: torch.Tensor, got: torch.Tensor, tolerance: Tolerance) -> bool:
    """Compare as KernelBench does, with eager's answer by torch.allclose: no NaN passes."""
    assert tolerance.atol is not None
    wide = torch.complex128 if native.is_complex() else torch.float64
    return all(
        torch.allclose(want.to(wide), have.to(wide), atol=tolerance.atol, rtol=tolerance.rtol)
        for want, have in zip(_parts(native), _parts(got), strict=True)
    )


def compare_all_close(path: str, native: torch.Tensor, got: torch.Tensor, tolerance: Tolerance) -> LeafResult:
    """Return by how much KernelBench's comparison passes, or where it fails most."""
    if native.is_complex():
        path = f"{path}.view_as_real"
        native, got = torch.view_as_real(native), torch.view_as_real(got)
    return _worst_of(path, native, got, tolerance, 0.0)


def worst_within(limit: float, path: str, expected: torch.Tensor, got: torch.Tensor, tolerance: Tolerance) -> bool:
    """Return whether `compare_leaf(...).worst` is at most `limit`; the largest error may tell in fewer passes."""
    scale = None if expected.is_complex() else Scale(expected)
    # Monotone rounding makes the bound as exact as the figure that it stands for.
    if _bound(expected, got, tolerance, scale) <= limit:
        return True
    return compare_leaf(path, expected, got, tolerance, scale).worst <= limit


def _bound(expected: torch.Tensor, got: torch.Tensor, tolerance: Tolerance, scale: Scale | None) -> float:
    """Return what no error over its tolerance exceeds, by one pass or two; infinite where that says nothing."""
    if scale is None:
        return math.inf
    largest, _ = _largest(expected, got, None)
    if largest == 0.0:
        return 0.0
    return largest / scale.value / tolerance.rtol if math.isfinite(largest) and scale.value else math.inf


def _all_within(expected: torch.Tensor, got: torch.Tensor, tolerance: Tolerance, scale: Scale) -> LeafResult | None:
    """Return the result of the usual case in few passes: equal, or finite and within the tolerance; else None."""
    largest, ratio = _largest(expected, got, scale)
    worst = ratio / tolerance.rtol
    return LeafResult(worst, largest, 0, None) if math.isfinite(largest) and worst <= 1.0 else None


def _largest(expected: torch.Tensor, got: torch.Tensor, scale: Scale | None) -> tuple[float, float]:
    """Return the largest |got - expected|, and the largest |got - expected| / (|expected| + scale), 0 without a scale.

    The first is not a finite number where an element of either is not and they are not the same infinity; the second is
    infinite where there are errors and the scale is 0. Memory traffic is what this costs, for float32 against float64
    14 bytes an element while all are equal; from the first part on where one is not 28, and 64 more for the second
    figure. Rectifiers, maxima and copies have no error at all. On a GPU it is one pass of 12 bytes an element.
    """
    if fused.covers(expected, got):
        return _largest_by_one_pass(expected, got, scale)
    errors, ratios = [], []
    equal = True
    for want_part, have_part in zip(_parts(expected), _parts(got), strict=True):
        want, have = _readable(want_part), _readable(have_part)
        equal = equal and bool((want == have).all())
        if equal:
            continue
        wide = want.double()
        error = wide - have
        errors.append(_magnitude(error))
        if scale is None:
            continue
        largest = float(errors[-1])
        if not math.isfinite(largest) or (largest and not scale.value):
            return largest, math.inf
        if largest:
            ratios.append(_magnitude(error.div_(wide.abs().add_(scale.value))))
    return _maximum(errors), _maximum(ratios)


def _largest_by_one_pass(expected: torch.Tensor, got: torch.Tensor, scale: Scale | None) -> tuple[float, float]:
    if scale is None:
        return fused.largest_errors(expected, got, 0.0)[0], 0.0
    largest, ratio = fused.largest_errors(expected, got, scale.value)
    return largest, math.inf if not math.isfinite(largest) or (largest and not scale.value) else ratio


def largest_over(expected: torch.Tensor, got: torch.Tensor, rtol: float, scale: Scale) -> float:
    """Return the largest |got - expected| over its tolerance; infinite where an element of either is not finite."""
    largest, ratio = _largest(expected, got, scale)
    return ratio / rtol if math.isfinite(largest) else math.inf


def _readable(part: torch.Tensor) -> torch.Tensor:
    """Convert to what an operator takes beside any other: floating types widen each other, integers do not."""
    return part if part.dtype in _WIDENED else part.double()


def _magnitude(values: torch.Tensor) -> torch.Tensor:
    """Return the largest magnitude, NaN where there is one; minimum and maximum need no pass for absolute values."""
    return torch.stack(torch.aminmax(values)).abs_().amax()


def _maximum(values: list[torch.Tensor]) -> float:
    return float(torch.stack(values).amax()) if values else 0.0


def _worst_of(path: str, expected: torch.Tensor, got: torch.Tensor, tolerance: Tolerance, scale: float) -> LeafResult:
    """Return where it is wrong most, and how much of it is."""
    worst, worst_at, max_abs, max_rel, wrong, not_finite = 0.0, -1, 0.0, 0.0, 0, 0
    flat_expected, flat_got = expected.reshape(-1), got.reshape(-1)
    start = 0
    for part, got_part in zip(_parts(expected), _parts(got), strict=True):
        want, have = part.double(), got_part.double()
        equal = want == have
        if tolerance.atol is None:
            equal |= torch.isnan(want) & torch.isnan(have)
        finite = torch.isfinite(want) & torch.isfinite(have)
        error = torch.where(equal, 0.0, (have - want).abs())
        if tolerance.atol is None:
            allowed = tolerance.rtol * (want.abs() + scale)
        else:
            allowed = tolerance.atol + tolerance.rtol * have.abs()
        ratio = torch.where(equal, 0.0, torch.where(finite, error / allowed, math.inf))
        ratio = torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf)
        bad = ratio > 1.0
        wrong += int(bad.sum())
        not_finite += int((torch.isfinite(want) & ~torch.isfinite(have)).sum())
        top = int(ratio.argmax())
        if float(ratio[top]) > worst:
            worst, worst_at = float(ratio[top]), start + top
        if bool(finite.any()):
            max_abs = max(max_abs, float(error[finite].max()))
            relative = (error / want.abs())[finite & (want != 0)]
            max_rel = max(max_rel, float(relative.max())) if relative.numel() else max_rel
        start += want.numel()
    mismatch = None
    if wrong:
        mismatch = Mismatch(
            output=path,
            index=_unravel(worst_at, tuple(expected.shape)),
            expected=_number(flat_expected[worst_at]),
            got=_number(flat_got[worst_at]),
            max_abs_error=max_abs,
            max_rel_error=max_rel,
            wrong_elements=wrong,
            elements=flat_expected.numel(),
        )
    return LeafResult(worst, max_abs, not_finite, mismatch)


def settled(native: torch.Tensor, precise: torch.Tensor, got: torch.Tensor) -> torch.Tensor:
    """Return `precise`, but eager's own answer where that is not finite and the candidate gives the same.

    A sum that overflows in the output's dtype is Inf or NaN in eager, and a number in higher precision: both are right.
    """
    if all_finite(native):
        return precise
    agreed = ~torch.isfinite(native) & ((got == native) | (torch.isnan(got) & torch.isnan(native)))
    return torch.where(agreed, native.to(precise.dtype), precise)


def excused(
    native: torch.Tensor, precise: torch.Tensor, got: torch.Tensor, tolerance: Tolerance, scale: Scale
) -> torch.Tensor:
    """Return `precise`, but the candidate's answer in the few elements that rounding alone may throw that far off.

    Where planted extremes meet, a row of an output can be ten times as large as the usual one, and so are its errors,
    also in the elements where its terms cancel. There an answer is right that is at most twice as far from the precise
    one as eager's, or within the tolerance by the size of the row, or of the line along another dimension. Where eager
    or the candidate is beyond the tolerance in more than `EXCUSED_SHARE` of the elements, no answer is.
    """
    most = EXCUSED_SHARE * precise.numel()
    eager_beyond, beyond, start, found, eager_errors = 0, 0, 0, [], []
    for want, own, have in zip(_parts(precise), _parts(native), _parts(got), strict=True):
        wide = want.double()
        allowed = wide.abs().add_(scale.value).mul_(tolerance.rtol)
        error = own.double().sub(wide).abs_()
        eager_beyond += int((error > allowed).sum())
        right = have.double().sub(wide).abs_() <= allowed  # NaN is not
        wrong = right.logical_not().nonzero().flatten()
        beyond += len(wrong)
        if max(eager_beyond, beyond) > most:
            return precise
        found.append(wrong + start)
        eager_errors.append(error[wrong])
        start += want.numel()
    places, eager_error = torch.cat(found), torch.cat(eager_errors)
    flat, answers = precise.reshape(-1), got.reshape(-1)[places]
    want = flat[places].double()
    error = (answers.double() - want).abs_()
    usual = 2.0 * eager_error >= error
    usual |= error <= tolerance.rtol * (want.abs() + _largest_line(precise, places))
    if not bool(usual.any()):
        return precise
    agreed = flat.clone()
    agreed[places[usual]] = answers[usual].to(agreed.dtype)
    return agreed.reshape(precise.shape)


def _largest_line(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the largest root mean square among the lines, one along each dimension, on which each flat place lies.

    A line that holds something that is not finite has none.
    """
    index = torch.unravel_index(places, values.shape)
    largest = torch.zeros(len(places), dtype=torch.float64, device=values.device)
    for dim, size in enumerate(values.shape):
        at_once = max(1, LINE_ELEMENTS // size)
        others = [along.split(at_once) for number, along in enumerate(index) if number != dim]
        lines = values.movedim(dim, -1)
        parts = [lines[part].double().square().mean(-1).sqrt() for part in zip(*others, strict=True)] if others else []
        if parts:
            torch.maximum(largest, torch.cat(parts).nan_to_num_(0.0, 0.0), out=largest)
    return largest


def compare_output(
    path: str,
    native: torch.Tensor,
    precise: torch.Tensor,
    got: torch.Tensor,
    tolerance: Tolerance | None = None,
    changed: Mapping[str, float] | None = None,
) -> tuple[LeafResult, Tolerance | None]:
    """Compare one output as candidates are judged; return its tolerance too, None where the dtype demands equality.

    Without `tolerance` eager's own error decides (`tolerance_for`, which takes `changed`).
    """
    if native.dtype not in RTOL:
        return LeafResult(0.0, None, 0, compare_exact(path, native, precise, got)), None
    scale = None if precise.is_complex() else Scale(precise)
    tolerance = tolerance or tolerance_for(native, precise, path, scale, changed)
    if scale is not None and (within := _all_within(precise, got, tolerance, scale)) is not None:
        return within, tolerance  # `settled` changes only what is not finite and not what `precise` has
    agreed = settled(native, precise, got)
    result = compare_leaf(path, agreed, got, tolerance, scale if agreed is precise else None)
    if result.mismatch is not None and scale is not None and agreed is precise and precise.numel() >= MIN_EXCUSING:
        agreed = excused(native, precise, got, tolerance, scale)
        result = result if agreed is precise else compare_leaf(path, agreed, got, tolerance)
    return result, tolerance


def plainly_right(
    precise: torch.Tensor, got: torch.Tensor, changed: Mapping[str, float] | None = None
) -> LeafResult | None:
    """Return what `compare_output` says of an answer that passes whatever eager's own is: within `plain_tolerance`.

    `tolerance_for` never gives a narrower one, and what `settled` excuses is not needed. None says nothing.
    """
    if got.dtype not in RTOL:
        return None
    plain = plain_tolerance(got.dtype, changed)
    if precise.is_complex():
        precise, got = torch.view_as_real(precise), torch.view_as_real(got)
    return _all_within(precise, got, plain, Scale(precise))


def compare_exact(path: str, native: torch.Tensor, precise: torch.Tensor, got: torch.Tensor) -> Mismatch | None:
    """Compare integers and booleans with eager's answer or, where rounding decides a tie, with the precise one's."""
    if torch.equal(got, native):
        return None
    wrong = (got != native) & (got != precise.to(got.dtype))
    count = int(wrong.sum())
    if not count:
        return None
    at = int(wrong.reshape(-1).int().argmax())
    return Mismatch(
        output=path,
        index=_unravel(at, tuple(native.shape)),
        expected=_number(native.reshape(-1)[at]),
        got=_number(got.reshape(-1)[at]),
        max_abs_error=None,
        max_rel_error=None,
        wrong_elements=count,
        elements=native.numel(),
    )


def _number(element: torch.Tensor) -> float | int | bool:
    value = element.item()
    assert isinstance(value, (bool, int, float))
    return value


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        flat, digit = divmod(flat, size)
        index.append(digit)
    return tuple(reversed(index))
