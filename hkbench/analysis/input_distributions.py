"""Input distributions beside a problem's own: shifted, heavy-tailed, with outliers. What `draw` returns has extremes.

A kernel that is right on one distribution only (a normaliser taken as known, a term that is near zero, a sum that never
overflows) fails on another. What a tensor shows of its domain (sign, unit interval, zeros, probabilities, symmetry) is
kept, and a variation that eager PyTorch itself does not survive is made milder or left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hkbench.analysis import compare, domains, integer_inputs
from hkbench.analysis.domains import Domain
from hkbench.analysis.planting import Planting, RangeChecks, drawn_places
from hkbench.analysis.reference import Leaves, Reference
from hkbench.analysis.tolerances import WIDEST
from hkbench.errors import ProblemError
from hkbench.protocol.memory import mapped
from hkbench.protocol.wire import leaves
from hkbench.records import Tolerance

OWN = "own"
NAMES = ("shifted", "heavy-tailed", "outliers")
#: (strength, with planted extremes), tried in turn before the variation is given up.
TRIED = ((1.0, True), (0.5, True), (1.0, False), (0.5, False), (0.25, False))
#: The most telling first: one trial has the problem's own inputs, with parameters that hide no missing term.
_BY_WEIGHT = ((OWN, "random"), ("shifted", "random"), (OWN, OWN), ("heavy-tailed", "random"), ("outliers", OWN))
_IN_ORDER = ((OWN, OWN), (OWN, "random"), ("shifted", "random"), ("heavy-tailed", "random"), ("outliers", OWN))
SAMPLE = 1 << 16  #: elements of an output that tell whether it has become one value
DEGENERATE = 0.98  #: share of one value above which an output says nothing ...
_LIVELY = 0.9  #: ... if its share was below this with the problem's own inputs


@dataclass(frozen=True)
class TrialPlan:
    """What one correctness trial uses; the words of `records.Trial`."""

    inputs: str
    parameters: str


def trial_plan(trials: int, has_parameters: bool) -> tuple[TrialPlan, ...]:
    """Return one entry a trial. Fewer than five keep the most telling ones, more repeat the list.

    Parameters as constructed come first, so that a later change of them finds whatever the candidate cached.
    """
    if trials < 1:
        raise ValueError(f"{trials} trials")
    wanted = Counter(_BY_WEIGHT[number % len(_BY_WEIGHT)] for number in range(trials))
    ordered = [entry for entry in _IN_ORDER for _ in range(wanted[entry])]
    return tuple(TrialPlan(inputs, parameters if has_parameters else OWN) for inputs, parameters in ordered)


def vary(name: str, inputs: list[object], seed: int, strength: float = 1.0, exact: bool = False) -> list[Any]:
    """Return the inputs with their floating tensors redistributed: same structure, shapes, dtypes, strides and device.

    `inputs` is emptied on the way, tensor by tensor: both together may not fit into memory. `strength` (0..1] scales
    the change. `exact` multiplies by powers of two only, which creates no ties for operators that return places.
    Integers, booleans, scalars, complex numbers and tensors whose values are a set of codes (see `Domain`) stay.
    """
    if name not in NAMES:
        raise ValueError(f"no variation {name!r}; there are {', '.join(NAMES)}")
    occurs = Counter(id(leaf) for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor))
    known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    generators: dict[torch.device, torch.Generator] = {}

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in known:
            return known[id(tensor)][1]
        if tensor.device not in generators:
            generators[tensor.device] = torch.Generator(tensor.device).manual_seed(seed)
        changed = _vary_tensor(name, tensor, generators[tensor.device], strength, exact)
        if occurs[id(tensor)] > 1:  # one tensor given twice stays one; held, so that its id is not given again
            known[id(tensor)] = (tensor, changed)
        return changed

    inputs.reverse()
    return [mapped(inputs.pop(), change) for _ in range(len(inputs))]


def _vary_tensor(name: str, x: torch.Tensor, gen: torch.Generator, strength: float, exact: bool) -> torch.Tensor:
    repeated = [d for d in range(x.dim()) if x.stride(d) == 0 and x.size(d) > 1]
    base = x.detach()
    for d in repeated:
        base = base.narrow(d, 0, 1)
    domain = domains.inspect(base)
    if domain.fixed or (exact and (domain.symmetric or domain.sums_to_one or domain.log_sums_to_zero)):
        return x
    out = torch.empty_strided(base.shape, base.stride(), dtype=base.dtype, device=base.device)
    if name == "outliers":
        _plant(base, out, domain, gen, strength, exact)
    elif exact:
        _by_powers_of_two(name, base, out, domain, gen)
    else:
        law = _shifted(domain, gen, strength) if name == "shifted" else _heavy_tailed(domain, strength)
        _elementwise(base, out, domain, law)
    _normalise(out, domain)
    return out.expand(x.shape) if repeated else out


Law = Callable[[torch.Tensor], torch.Tensor]  #: gives a tensor of its own


def _elementwise(x: torch.Tensor, out: torch.Tensor, domain: Domain, law: Law) -> None:
    """Write law(x), a part at a time; elements that are not finite stay, and none becomes so."""
    for part, target in zip(domains.pieces(x), domains.pieces(out), strict=True):
        wide = part.double() if part.dtype is torch.float64 else part.float()
        new, most = law(wide), domain.ceiling
        if new.dtype is target.dtype and not domain.infinite:
            torch.clamp(new, -most, most, out=target)
            continue
        new.clamp_(-most, most)
        target.copy_(torch.where(torch.isfinite(wide), new, wide) if domain.infinite else new)


def _uniform(low: float, high: float, gen: torch.Generator) -> float:
    return low + (high - low) * float(torch.rand((), generator=gen, device=gen.device))


def _power(domain: Domain, exponent: float) -> Law:
    """Return x -> sign(x) |x / m|^exponent m: monotone, keeps zero and the largest magnitude m."""
    top = domain.largest
    if domain.lowest >= 0.0:
        return lambda x: x.div(top).pow_(exponent).mul_(top)
    return lambda x: x.abs().div_(top).pow_(exponent).copysign_(x).mul_(top)


def _shifted(domain: Domain, gen: torch.Generator, strength: float) -> Law:
    """Return x -> a x + b, with a in 0.5..3 and b in 0.5..3 standard deviations.

    There is no offset where zero or the sign matters.
    """
    upwards = _uniform(0, 1, gen) < 0.5
    if domain.bounded or domain.sums_to_one:
        exponent = _uniform(1.4, 2.5, gen) ** (strength if upwards else -strength)
        return _power(domain, exponent)
    a = (_uniform(1.5, 3.0, gen) if upwards else _uniform(0.5, 0.7, gen)) ** strength
    if domain.zeros or domain.one_sign:
        return lambda x: a * x
    b = strength * _uniform(0.5, 3.0, gen) * domain.deviation * (1.0 if _uniform(0, 1, gen) < 0.5 else -1.0)
    return lambda x: (a * x).add_(b)


def _heavy_tailed(domain: Domain, strength: float) -> Law:
    """Return x -> c |c / s|^k about the mean, rescaled to the deviation s: normal data get a kurtosis above 10."""
    if domain.bounded or domain.sums_to_one:
        return _power(domain, 1.0 + 2.0 * strength)
    centre = 0.0 if domain.zeros or domain.one_sign else domain.mean
    spread = domain.rms if centre == 0.0 else domain.deviation

    def raw(x: torch.Tensor) -> torch.Tensor:
        c = (x - centre).div_(spread)
        return c.abs().pow_(strength).mul_(c)

    rescale = spread / max(float(raw(domain.sample).square().mean().sqrt()), 1e-30)
    return lambda x: raw(x).mul_(rescale).add_(centre)


def _by_powers_of_two(name: str, x: torch.Tensor, out: torch.Tensor, domain: Domain, gen: torch.Generator) -> None:
    """Change exactly: one factor for all (shifted), or one for each element, large ones rare (heavy-tailed)."""
    sign = -1.0 if domain.bounded or domain.largest * 64.0 > domain.ceiling else 1.0
    if name == "shifted":
        factor = 2.0 ** (sign * (1 + int(_uniform(0, 2, gen))))
        torch.mul(x, factor, out=out)
        return
    for part, target in zip(domains.pieces(x), domains.pieces(out), strict=True):
        chance = torch.rand(part.shape, generator=gen, device=x.device).clamp_min(1e-9)
        if domain.ordered:
            chance = chance.fill_(0.2)
        exponent = (-torch.log2(chance)).floor().clamp(0, 5) * sign
        target.copy_(part * torch.exp2(exponent).to(part.dtype))


def _plant(
    x: torch.Tensor, out: torch.Tensor, domain: Domain, gen: torch.Generator, strength: float, exact: bool
) -> None:
    """Plant a few elements of 30 to 100 times the rms, at least one; in a bounded domain all others shrink instead."""
    shrink = 2.0 ** -round(5 * strength) if domain.bounded else 1.0
    torch.mul(x, shrink, out=out)
    if domain.ordered:  # a large element would stand in the wrong place
        return
    places = drawn_places(x, gen, max(1, min(x.numel() // 50_000, 256)))
    if places is None:
        return
    old = x[places].double()
    if exact:
        factors = 2.0 ** (5 + (torch.rand(old.shape, generator=gen, device=x.device) * 2).floor()).double()
        new = old if domain.bounded else (old * factors)
    else:
        factors = (30.0 + 70.0 * torch.rand(old.shape, generator=gen, device=x.device)).double() ** strength
        size = domain.largest if domain.bounded else domain.rms
        new = torch.sign(old) * size * (1.0 if domain.bounded else factors)
    new = new.clamp(-domain.ceiling, domain.ceiling).to(out.dtype)
    out[places] = new
    if domain.symmetric:
        out.mT[places] = new


def _normalise(out: torch.Tensor, domain: Domain) -> None:
    if domain.sums_to_one is not None:
        out.div_(out.sum(domain.sums_to_one, keepdim=True))
    elif domain.log_sums_to_zero is not None:
        out.sub_(torch.logsumexp(out, domain.log_sums_to_zero, keepdim=True))


@dataclass(frozen=True)
class Shape:
    """What matters of one output under the problem's own inputs: shares of its elements, 0..1."""

    finite: float
    commonest: float  #: of the value that occurs most often


def summarise(native: Leaves) -> dict[str, Shape]:
    """Return the shapes of the floating outputs that have elements, by path."""
    return {
        path: _shape(leaf)
        for path, leaf in native.items()
        if isinstance(leaf, torch.Tensor) and leaf.dtype in compare.RTOL and leaf.numel() > 0
    }


def _shape(leaf: object) -> Shape:
    assert isinstance(leaf, torch.Tensor)
    finite = 1.0
    if not domains.all_finite(leaf):
        finite = sum(int(torch.isfinite(part).sum()) for part in domains.pieces(leaf)) / leaf.numel()
    flat = domains.sample_of(torch.view_as_real(leaf) if leaf.is_complex() else leaf, SAMPLE).double()
    _, counts = torch.unique(flat, return_counts=True)
    # Of one element nothing can be said: it always equals itself.
    return Shape(finite, int(counts.max()) / flat.numel() if flat.numel() > 1 else 0.0)


def admissible(
    native: Leaves, precise: Leaves, own: dict[str, Shape], changed: Mapping[str, float] | None = None
) -> dict[str, Tolerance] | None:
    """Return the tolerances of the floating outputs; None where an honest kernel cannot be judged by these outputs.

    They can where they are as finite as under the problem's own inputs, of which `own` is the summary, have not become
    one value, and eager's error leaves the factor of two that `compare.tolerance_for`, which takes `changed` and gives
    these tolerances, has within the widest one. Places (integers) are the same in both precisions.
    """
    tolerances = {}
    for path, leaf in native.items():
        exact = precise[path]
        if not isinstance(leaf, torch.Tensor) or not isinstance(exact, torch.Tensor):
            continue
        if leaf.dtype not in compare.RTOL:
            if compare.compare_exact(path, exact.to(leaf.dtype), exact, leaf) is not None:
                return None
            continue
        if path not in own:
            continue
        shape = _shape(leaf)
        if shape.finite < own[path].finite - (0.0 if own[path].finite == 1.0 else 0.01):
            return None
        if shape.commonest > DEGENERATE and own[path].commonest < _LIVELY:
            return None
        scale = None if exact.is_complex() else compare.Scale(exact)
        tolerances[path] = compare.tolerance_for(leaf, exact, path, scale, changed)
        if not _eager_is_close(path, leaf, exact, tolerances[path]):
            return None
    return tolerances


def _eager_is_close(path: str, native: torch.Tensor, precise: torch.Tensor, tolerance: Tolerance) -> bool:
    """Return whether eager's error is within half of the widest tolerance, its own overflows aside."""
    assert tolerance.plain_rtol is not None
    if tolerance.eager_error is not None:
        return tolerance.eager_error <= 0.5 * WIDEST * tolerance.plain_rtol
    settled = compare.settled(native, precise, native)
    return settled is not precise and compare.worst_within(0.5 * WIDEST, path, settled, native, tolerance)


@dataclass(frozen=True)
class Drawn:
    """Inputs of one trial, what eager and the precise reference make of them, and which distribution it became."""

    inputs: list[Any]
    native: Leaves
    precise: Leaves
    name: str  #: as asked for, with "(milder)", or "own" where no strength was admissible
    tolerances: dict[str, Tolerance]  #: of outputs by path, as far as they were found on the way
    integers: str | None = None  #: the kind that integer inputs were drawn by; None: the problem's own


class Variator:
    """Draw inputs for one reference. Remember how its outputs look under its own inputs, and what is planted."""

    def __init__(self, reference: Reference, changed: Mapping[str, float] | None = None, plants: bool = True) -> None:
        """Take `changed`, rtol by dtype where it is not the usual one; without `plants` no extremes are planted."""
        self._plants = plants
        self._reference = reference
        self._changed = changed
        self._own: dict[str, Shape] = {}
        self._places = False  #: some output is a place or a choice, which ties would make ambiguous
        self._planting: Planting | None = None
        self._integers = False  #: some input holds integers that can be drawn anew
        self.not_taken: set[str] = set()  #: kinds of integers that an honest kernel cannot be judged by

    @property
    def unseen(self) -> tuple[int, ...]:
        """Numbers of floating input tensors of which single elements do not show in the outputs."""
        return () if self._planting is None else self._planting.unseen

    def draw(self, name: str, seed: int, integers: str | None = None) -> Drawn:
        """Draw inputs, deterministic in `seed`, given the reference's parameters.

        `integers` is the kind that integer tensors are drawn by, of `integer_inputs.KINDS`; where it does not go with
        the variation, it goes before that.

        Raises what the reference raises on the problem's own inputs; a variation that it cannot take is dropped.
        """
        self._settle(seed)
        kind = integers if self._integers else None
        varied = [] if name == OWN else [(name, strength, planted) for strength, planted in TRIED]
        plain = [(OWN, 1.0, planted) for planted in (True, False)]
        for asked, strength, planted in [*varied, *plain] if kind is not None else []:
            found = self._try(asked, seed, strength, planted, kind)
            if found is not None:
                return found
        if kind is not None:
            self.not_taken.add(kind)
        for asked, strength, planted in varied:
            found = self._try(asked, seed, strength, planted, None)
            if found is not None:
                return found
        return self._answered(self.inputs(seed))

    def plain(self, seed: int) -> Drawn:
        """Draw the problem's own inputs as they are."""
        return self._answered(self._reference.inputs(seed))

    def inputs(self, seed: int) -> list[Any]:
        """Return the problem's own inputs with planted extremes, as timed calls have them. Deterministic in `seed`."""
        return self._settle(seed).planted(self._reference.inputs(seed), seed)

    def _settle(self, seed: int) -> Planting:
        """Look once at the problem's own inputs and outputs."""
        if self._planting is None:
            inputs = self._reference.inputs(seed)
            self._integers = integer_inputs.has_integers(inputs)
            checks = RangeChecks()
            native = self._reference.native(inputs, around=checks)
            self._own = summarise(native)
            self._places = any(isinstance(v, torch.Tensor) and v.dtype not in compare.RTOL for v in native.values())
            planted = [*inputs] if self._plants else []
            self._planting = Planting(self._reference, self._accepts, not checks.found, planted, native, seed)
        return self._planting

    def _accepts(self, native: Leaves, precise: Leaves) -> bool:
        return admissible(native, precise, self._own, self._changed) is not None

    def _answered(self, inputs: list[Any]) -> Drawn:
        native = self._reference.native(inputs)
        return Drawn(inputs, native, self._reference.precise(inputs, native), OWN, {})

    def _try(self, name: str, seed: int, strength: float, planted: bool, integers: str | None) -> Drawn | None:
        """Return such inputs, None where an honest kernel cannot be judged by them."""
        try:
            inputs = self._reference.inputs(seed)
            if name != OWN:
                inputs = vary(name, inputs, seed, strength, self._places)
            if integers is not None:
                lengths = integer_inputs.lengths_of(self._reference.model.forward)
                inputs = integer_inputs.skewed(integers, inputs, seed, lengths)
            if planted:
                inputs = self._settle(seed).planted(inputs, seed)
            native = self._reference.native(inputs)
            precise = self._reference.precise(inputs, native)
        except (ProblemError, torch.OutOfMemoryError):
            return None
        tolerances = admissible(native, precise, self._own, self._changed)
        if tolerances is None:
            return None
        called = name if name == OWN or strength == 1.0 else f"{name} (milder)"
        return Drawn(inputs, native, precise, called, tolerances, integers)
