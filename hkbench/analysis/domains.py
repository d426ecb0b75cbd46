"""What the values of a tensor show of the domain that they come from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

CHUNK = 1 << 25  #: elements looked at together, which bounds temporary memory
SAMPLE = 1 << 18  #: elements that moments are taken from
MANY_ZEROS = 0.01  #: share of exact zeros above which they are structure (sparse, triangular, masked)
#: Share of the sample below which they are not: of a tensor with `MANY_ZEROS` it holds 2600 zeros, 50 more or less.
_FEW_ZEROS = MANY_ZEROS / 10
CODES = 32  #: as many different values at most make a set of codes (labels, masks), if each occurs often
FEW = 1 << 12  #: elements of the sample that mostly show already that they are no codes
_KINDS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Domain:
    """`fixed`: leave it alone, it holds no real numbers, one value only, whole numbers, or a few codes."""

    fixed: bool
    sample: torch.Tensor  #: finite elements, float64
    lowest: float = 0.0
    highest: float = 0.0
    zeros: bool = False  #: many exact zeros: they are structure
    zero_share: float = 0.0  #: of all finite elements; where zeros are few in a large tensor, of the sample
    infinite: bool = False  #: some elements are NaN or infinite (masks)
    symmetric: bool = False  #: equal to its transpose in the last two dimensions
    ordered: bool = False  #: sorted along the last dimension
    sums_to_one: int | None = None  #: dimension along which the elements are probabilities
    log_sums_to_zero: int | None = None  #: dimension along which they are logarithms of probabilities
    ceiling: float = math.inf  #: magnitude that new values stay below: far from the dtype's overflow

    @property
    def one_sign(self) -> bool:
        return self.lowest >= 0.0 or self.highest <= 0.0

    @property
    def largest(self) -> float:
        return max(abs(self.lowest), abs(self.highest))

    @property
    def bounded(self) -> bool:
        """Within [-1, 1]: probabilities, sines, similarities, uniform numbers."""
        return self.largest <= 1.0 and self.log_sums_to_zero is None

    @property
    def mean(self) -> float:
        return float(self.sample.mean())

    @property
    def deviation(self) -> float:
        return float(self.sample.std(correction=0))

    @property
    def rms(self) -> float:
        return float(self.sample.square().mean().sqrt())


def pieces(x: torch.Tensor, most: int | None = None) -> Iterator[torch.Tensor]:
    """Yield views that cover the tensor along its longest dimension, of about `most` elements (default: `CHUNK`)."""
    most = CHUNK if most is None else most
    if x.numel() <= most:
        yield x
        return
    along = max(range(x.dim()), key=x.size)
    yield from x.split(max(1, most * x.size(along) // x.numel()), along)


def sample_of(x: torch.Tensor, count: int) -> torch.Tensor:
    """Return all elements, or `count` at places that a fixed seed draws; flat, a copy whatever the strides."""
    if x.numel() <= count:
        return x.reshape(-1).clone()
    gen = torch.Generator(x.device).manual_seed(0)
    return x[tuple(torch.randint(0, size, (count,), generator=gen, device=x.device) for size in x.shape)]


def all_finite(x: torch.Tensor) -> bool:
    """Return whether no element is NaN or infinite. One pass where the dtype has a minimum, and no copy."""
    if x.dtype not in _KINDS:
        return bool(torch.isfinite(x).all())
    if not x.numel():
        return True
    ends = [end for part in pieces(x) for end in torch.aminmax(part)]  # which hand on NaN
    return bool(torch.isfinite(torch.stack(ends)).all())


def inspect(x: torch.Tensor) -> Domain:
    """Look at every element for what must hold for all, and at a sample for moments."""
    x = x.detach()
    nothing = Domain(True, torch.empty(0, dtype=torch.float64))
    if x.dtype not in _KINDS or x.numel() < 2 or _overlaps(x):
        return nothing
    lowest, highest, finite = _extent(x)
    if not finite or lowest == highest:
        return nothing
    sample = sample_of(x, SAMPLE).double()
    sample = sample[torch.isfinite(sample)]
    if _whole(x, sample) or _codes(x, sample):
        return nothing
    zero_share = _zero_share(x, sample, finite)
    largest = max(abs(lowest), abs(highest))
    whole_rows = finite == x.numel()
    return Domain(
        fixed=float(sample.std(correction=0)) == 0.0 if sample.numel() else True,
        sample=sample,
        lowest=lowest,
        highest=highest,
        zeros=zero_share > MANY_ZEROS,
        zero_share=zero_share,
        infinite=not whole_rows,
        symmetric=_symmetric(x),
        ordered=_ordered(x),
        sums_to_one=_normalised(x, logarithms=False) if whole_rows and lowest >= 0.0 and highest <= 1.0 else None,
        log_sums_to_zero=_normalised(x, logarithms=True) if highest <= 0.0 else None,
        ceiling=max(largest, 0.1 * torch.finfo(x.dtype).max),
    )


def _extent(x: torch.Tensor) -> tuple[float, float, int]:
    """Return the lowest and the highest finite element, and how many finite elements there are."""
    parts = list(pieces(x))
    # Read from the device once: what is not finite shows in minimum and maximum, and hardly any tensor has that.
    seen = torch.stack([torch.stack(torch.aminmax(part)) for part in parts]).tolist()
    lowest, highest, finite = math.inf, -math.inf, 0
    for part, (low, high) in zip(parts, seen, strict=True):
        kept = part
        if not (math.isfinite(low) and math.isfinite(high)):
            kept = part[torch.isfinite(part)]
            if not kept.numel():
                continue
            low, high = (float(end) for end in torch.aminmax(kept))
        lowest, highest, finite = min(lowest, low), max(highest, high), finite + kept.numel()
    return lowest, highest, finite


def _zero_share(x: torch.Tensor, sample: torch.Tensor, finite: int) -> float:
    """Return the share of zeros among the finite elements.

    They are counted where they may be structure; else the sample says how few they are.
    """
    share = int((sample == 0.0).sum()) / max(1, sample.numel())
    if x.numel() <= SAMPLE or share < _FEW_ZEROS:
        return share
    return sum(part.numel() - int(torch.count_nonzero(part)) for part in pieces(x)) / finite


def _whole(x: torch.Tensor, sample: torch.Tensor) -> bool:
    """Return whether all finite elements are whole numbers; nearly always the sample says that they are not."""
    if not bool((sample == sample.round()).all()):
        return False
    return all(bool(((part == part.round()) | ~torch.isfinite(part)).all()) for part in pieces(x))


def _overlaps(x: torch.Tensor) -> bool:
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _codes(x: torch.Tensor, sample: torch.Tensor) -> bool:
    if torch.unique(sample[:FEW]).numel() > CODES:
        return False
    values = torch.unique(sample)
    if values.numel() > CODES or values.numel() * 4 > sample.numel():
        return False
    known = values.to(x.dtype)
    return all(bool((torch.isin(part, known) | ~torch.isfinite(part)).all()) for part in pieces(x))


def _symmetric(x: torch.Tensor) -> bool:
    if x.dim() < 2 or x.size(-1) != x.size(-2) or x.size(-1) < 2:
        return False
    # One row and column first, as below; a transposed matrix is slow to read.
    return torch.equal(x[..., 0, :], x[..., :, 0]) and torch.equal(x, x.mT)


def _ordered(x: torch.Tensor) -> bool:
    """Return whether every row of at least eight elements ascends or descends: random ones hardly ever do."""
    if x.dim() == 0 or x.size(-1) < 8:
        return False
    first = x.select(0, 0) if x.dim() > 1 else x  # most tensors are told by their first slice
    while first.dim() > 1:
        first = first.select(0, 0)
    step = first[1:] - first[:-1]
    if not (bool((step >= 0).all()) or bool((step <= 0).all())):
        return False
    rising = bool((step >= 0).all())
    return all(
        bool(((part[..., 1:] >= part[..., :-1]) if rising else (part[..., 1:] <= part[..., :-1])).all())
        for part in (x.split(max(1, CHUNK * x.size(0) // x.numel()), 0) if x.dim() > 1 else (x,))
    )


def _normalised(x: torch.Tensor, logarithms: bool) -> int | None:
    slack = 1e-3 if x.dtype in (torch.float32, torch.float64) else 3e-2
    for dim in reversed(range(x.dim())):
        if x.size(dim) < 2:
            continue
        # One row first: it nearly always says no, and costs nothing.
        row = x[tuple(slice(None) if d == dim else 0 for d in range(x.dim()))].double()
        total = torch.logsumexp(row, 0) if logarithms else row.sum() - 1.0
        if not abs(float(total)) <= slack:
            continue
        sums = torch.logsumexp(x, dim) if logarithms else x.sum(dim, dtype=torch.float32) - 1.0
        if bool((sums.abs() <= slack).all()):
            return dim
    return None
