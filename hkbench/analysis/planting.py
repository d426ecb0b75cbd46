"""A few extreme elements at drawn places of every input, in trials and in timed calls: who leaves out a part is wrong.

The mean of 2^30 numbers is known from three quarters of them far better than any tolerance asks for. So each floating
input gets up to `MAX_PLANTS` elements of a size at which leaving them out shows in the outputs. That size is looked
for once for each reference, by its own outputs: from `FIRST_SIZE` times the tensor's spread upwards, as far as eager
PyTorch stays close to the precise reference and the scale of the outputs, and with it the tolerance, stays what it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from hkbench.analysis import compare, domains
from hkbench.analysis.dispatch import QuickDispatchMode
from hkbench.analysis.domains import Domain
from hkbench.analysis.reference import Leaves, Reference
from hkbench.errors import ProblemError
from hkbench.protocol.memory import mapped
from hkbench.protocol.wire import leaves

MAX_PLANTS = 64  #: elements of one tensor
PLANTED_SHARE = 1 / 1024  #: of its elements, but always one
FIRST_SIZE = 8.0  #: times the tensor's spread, at the least
FAR_FROM_ZERO = 2.0  #: standard deviations of the mean from zero; then elements spread about the mean, by these
FEW_PLANTS = 8  #: where outputs are few and their tolerance wide: of many, a part would tell how many there are
WIDE = 1e-3  #: such a tolerance
VISIBLE = 4.0  #: change of an output over its tolerance
FEW_VISIBLE = 1.0  #: likewise where outputs are few and their tolerance wide
LEFT_OUT = (8, 2)  #: one in so many plants is left out to see the change, where one alone cannot show or does not
ALONE = 0.25  #: of an output that all plants may make together at twice the tolerance each, for one to show alone
INFLATED = 1.1  #: times the rms of an output with plants may be that without
FEW_OUTPUTS = 64  #: elements of an output whose tolerance goes by its elements' own size; their rms may grow more
FEW_INFLATED = 4.0
#: Share of the count and of the size, tried in turn until the reference bears the plants.
WEAKENED = ((1.0, 1.0), (1.0, 0.5), (0.25, 1.0), (0.25, 0.5), (0.06, 1.0), (0.06, 0.5), (0.0, 0.5), (0.0, 0.25))
ROUNDS = 8  #: of enlarging
MAX_ENLARGED = 1024.0  #: times, in one round
GROWTH = 1.2  #: of the change that makes another round worth it
SAMPLE = 1 << 18  #: elements of an output that tell the usual change
SPREAD_SAMPLE = 1 << 14
MIN_CHANGED = 8
USUAL = 0.9  #: quantile of the elements that change

#: What stops the device, or gives nonsense, outside of the values that it is made for.
_CHECKED = frozenset({"binary_cross_entropy", "bernoulli", "multinomial", "poisson", "_assert_async", "erfinv"})

Accepts = Callable[[Leaves, Leaves], bool]  #: whether an honest kernel can be judged by these (native, precise) outputs


@dataclass(frozen=True)
class Plants:
    """How one input tensor is planted."""

    count: int
    size: float  #: least magnitude over the tensor's spread; the largest is twice that
    spread: float  #: of the tensor that the size was found with: the rms, or where that is the mean's the deviation
    domain: Domain  #: without its sample
    outside: bool  #: may be larger than anything the problem's own inputs have


class Planting:
    """The plants of one reference's inputs, by the number of the tensor among them."""

    def __init__(
        self,
        reference: Reference,
        accepts: Accepts,
        may_leave: bool,
        inputs: list[object],
        native: Leaves,
        seed: int,
    ) -> None:
        """Look for the sizes, with `inputs` of the problem's own and their outputs `native`.

        `may_leave`: the reference can be given values beyond the range of the problem's own inputs.
        """
        self._reference = reference
        self._accepts = accepts
        self._may_leave = may_leave
        self._form: Leaves = {
            path: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf for path, leaf in native.items()
        }
        #: Some output is a place or a choice, which ties would make ambiguous.
        self._exact = any(isinstance(leaf, torch.Tensor) and leaf.dtype not in compare.RTOL for leaf in native.values())
        judged = {
            path: leaf
            for path, leaf in native.items()
            if isinstance(leaf, torch.Tensor) and leaf.dtype in compare.RTOL and not leaf.is_complex() and leaf.numel()
        }
        self._scales = {path: compare.root_mean_square(leaf) for path, leaf in judged.items()}
        self._rtols = {path: compare.plain_tolerance(leaf.dtype).rtol for path, leaf in judged.items()}
        few = all(leaf.numel() <= FEW_OUTPUTS for leaf in judged.values())
        self._few = few and max(self._rtols.values(), default=0.0) > WIDE
        self._visible = FEW_VISIBLE if self._few else VISIBLE
        self._found: dict[int, Plants] = {}
        self.unseen: tuple[int, ...] = ()  #: numbers of floating inputs of which single elements do not show
        usable = self._first(inputs)
        if usable:
            self._settle(usable, inputs, seed)

    def planted(self, inputs: list[object], seed: int) -> list[Any]:
        """Return the inputs with their plants, at places that the seed draws. `inputs` is emptied on the way."""
        return self._planted(self._found, inputs, seed) if self._found else inputs

    def _planted(
        self, plants: dict[int, Plants], inputs: list[object], seed: int, spare: tuple[int, int] = (-1, 0)
    ) -> list[Any]:
        """Take `spare`: number of a tensor, and how many of its plants are left out."""
        known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        generators: dict[torch.device, torch.Generator] = {}

        def change(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in known:
                number = len(known)
                made = tensor
                if number in plants:
                    if tensor.device not in generators:
                        generators[tensor.device] = torch.Generator(tensor.device).manual_seed(seed + 1)
                    skipped = spare[1] if number == spare[0] else 0
                    made = _planted(tensor, plants[number], generators[tensor.device], self._exact, skipped)
                known[id(tensor)] = (tensor, made)  # one tensor given twice stays one; held, so that its id is its own
            return known[id(tensor)][1]

        inputs.reverse()
        return [mapped(inputs.pop(), change) for _ in range(len(inputs))]

    def _first(self, inputs: list[object]) -> dict[int, Plants]:
        found: dict[int, Plants] = {}
        for number, tensor in enumerate(_distinct(inputs)):
            base = _unexpanded(tensor)
            domain = domains.inspect(base)
            if domain.fixed or domain.ordered:  # a large element would stand in the wrong place
                continue
            if self._exact and (domain.symmetric or _is_distribution(domain)):
                continue
            most = FEW_PLANTS if self._few else MAX_PLANTS
            count = max(1, min(most, int(base.numel() * PLANTED_SHARE)))
            outside = not domain.bounded and self._may_leave
            bare = replace(domain, sample=domain.sample[:0])
            spread = _centre_and_spread(base)[1]
            size = FIRST_SIZE if outside else min(FIRST_SIZE, domain.largest / spread)
            found[number] = Plants(count, size, spread, bare, outside)
        return found

    def _settle(self, usable: dict[int, Plants], inputs: list[object], seed: int) -> None:
        """Weaken all plants until the reference bears them, then enlarge those that do not show."""
        held = None
        for share, size in WEAKENED:
            weaker = {
                n: replace(one, count=max(1, int(one.count * share)), size=one.size * size) for n, one in usable.items()
            }
            held = self._outputs(weaker, inputs, seed)
            if held is not None:
                break
        if held is None:
            self.unseen = tuple(usable)
            return
        self._found = weaker
        if self._scales:
            self._enlarge(held, inputs, seed)

    def _enlarge(self, precise: Leaves, inputs: list[object], seed: int) -> None:
        pending, shown, modest = set(self._found), dict.fromkeys(self._found, 0.0), dict(self._found)
        step = 1.0
        for _ in range(ROUNDS):
            for number in sorted(pending) if step == 1.0 else ():
                change = self._change(number, precise, inputs, seed)
                if change >= self._visible:
                    pending.discard(number)
                elif shown[number] and change < GROWTH * shown[number]:  # larger ones bring nothing
                    pending.discard(number)
                    self._found[number] = modest[number]
                    self.unseen += (number,)
                shown[number] = change
            larger = {number: self._larger(self._found[number], shown[number], step) for number in pending}
            if all(one == self._found[number] for number, one in larger.items()):
                break
            made = self._outputs(self._found | larger, inputs, seed)
            if made is not None:
                self._found, precise, step = self._found | larger, made, 1.0
            else:
                step /= 2.0
        self.unseen = tuple(sorted({*self.unseen, *pending}))

    def _larger(self, one: Plants, shown: float, step: float) -> Plants:
        """Return larger plants. `step`: the factor's exponent, below one where the reference did not bear it whole."""
        if not self._may_leave and not _is_distribution(one.domain):
            return one
        factor = 16.0 if shown <= 0.0 else 1.5 * math.sqrt(self._visible / shown)
        return replace(one, size=one.size * min(max(2.0, factor), MAX_ENLARGED) ** step, outside=self._may_leave)

    def _left_out(self, one: Plants) -> list[int]:
        """Return how many plants to leave out to see whether it shows, one try after the other."""
        alone = self._few or 4.0 * one.count * max(self._rtols.values()) <= ALONE
        return sorted(({1} if alone else set()) | {max(1, one.count // share) for share in LEFT_OUT})

    def _outputs(self, plants: dict[int, Plants], inputs: list[object], seed: int) -> Leaves | None:
        """Return the precise outputs with these plants; None where an honest kernel cannot be judged by them."""
        made = self._planted(plants, list(inputs), seed)
        try:
            native = self._reference.native(made)
            if any(self._inflated(_tensor(native[path]), before) for path, before in self._scales.items()):
                return None
            precise = self._reference.precise(made, native)
        except (ProblemError, torch.OutOfMemoryError):
            return None
        return precise if self._accepts(native, precise) else None

    @staticmethod
    def _inflated(leaf: torch.Tensor, before: float) -> bool:
        most = INFLATED if leaf.numel() > FEW_OUTPUTS else FEW_INFLATED
        return before > 0.0 and not compare.root_mean_square(leaf) <= most * before

    def _change(self, number: int, precise: Leaves, inputs: list[object], seed: int) -> float:
        """Return how much the outputs change over their tolerance when some plants of one tensor are left out.

        Some may have no effect where they are, as a large negative number before a rectifier: then more are left out,
        which have to change the more.
        """
        largest, tries = 0.0, self._left_out(self._found[number])
        for skipped in tries:
            made = self._planted(self._found, list(inputs), seed, (number, skipped))
            without = self._reference.precise(made, self._form)
            if without is self._form:  # no higher precision
                without = self._reference.native(made)
            for path, rtol in self._rtols.items():
                change = _usual_change(_tensor(precise[path]), _tensor(without[path]), rtol)
                largest = max(largest, change * tries[0] / skipped)
            if largest >= self._visible:
                break
        return largest


def _usual_change(left: torch.Tensor, right: torch.Tensor, rtol: float) -> float:
    """Return a quantile of |left - right| over the tolerance, over the elements that differ if they are many.

    The largest would be that of a planted element's own place, which a kernel that estimates a mean still reads. Most
    may be that of elements without effect where they are, as large negative numbers in a sum of exponentials.
    """
    scale = compare.Scale(left)
    largest = compare.largest_over(left, right, rtol, scale)
    if largest < FEW_VISIBLE:
        return largest
    a, b = (domains.sample_of(x, SAMPLE).double() for x in (left, right))
    error, size = (a - b).abs(), a.abs() + scale.value
    changed = torch.isfinite(error) & (error > 8.0 * torch.finfo(left.dtype).eps * size)
    if int(changed.sum()) < MIN_CHANGED and left.numel() > MIN_CHANGED:
        return largest
    return float((error[changed] / (rtol * size[changed])).quantile(USUAL)) if bool(changed.any()) else 0.0


def _tensor(leaf: object) -> torch.Tensor:
    assert isinstance(leaf, torch.Tensor)
    return leaf


def _distinct(inputs: list[object]) -> list[torch.Tensor]:
    """Return the tensors in order; one that is given twice counts once."""
    found = {id(leaf): leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)}
    return list(found.values())


def _unexpanded(x: torch.Tensor) -> torch.Tensor:
    base = x.detach()
    for dim in range(x.dim()):
        if x.stride(dim) == 0 and x.size(dim) > 1:
            base = base.narrow(dim, 0, 1)
    return base


def _centre_and_spread(x: torch.Tensor) -> tuple[float, float]:
    """Return what large elements are large against: zero and the rms, or far from zero the mean and the deviation."""
    sample = domains.sample_of(x, SPREAD_SAMPLE).double()
    sample = sample[torch.isfinite(sample)]
    if not sample.numel():
        return 0.0, 0.0
    mean, deviation, rms = torch.stack(
        [sample.mean(), sample.std(correction=0), sample.square().mean().sqrt()]
    ).tolist()
    return (mean, deviation) if abs(mean) > FAR_FROM_ZERO * deviation > 0.0 else (0.0, rms)


def _is_distribution(domain: Domain) -> bool:
    return domain.sums_to_one is not None or domain.log_sums_to_zero is not None


def _planted(x: torch.Tensor, plants: Plants, gen: torch.Generator, exact: bool, skipped: int) -> torch.Tensor:
    """Return a copy with its plants but for the first `skipped`; the same places whatever is skipped."""
    base, domain = _unexpanded(x), plants.domain
    out = torch.empty_strided(base.shape, base.stride(), dtype=base.dtype, device=base.device).copy_(base)
    if _is_distribution(domain):
        _concentrate(out, plants, gen, skipped)
    else:
        places = drawn_places(out, gen, plants.count)
        if places is None:
            return x
        old = out[places].double()
        grain = 1.0 + torch.rand(old.shape, generator=gen, device=x.device).double()
        centre, spread = _centre_and_spread(out)
        spread = max(plants.spread, spread) if not centre else spread
        if exact:  # by powers of two, which makes no ties
            power = round(math.log2(plants.size))
            new = old * torch.exp2(power + (grain > 1.5).double())
            new = torch.where(new.abs() > domain.largest, old, new) if not plants.outside else new
        else:
            new = centre + torch.sign(old - centre) * plants.size * spread * grain
            inside = torch.sign(new) * torch.minimum(new.abs(), domain.largest * (1.1 - 0.1 * grain))
            new = new if plants.outside else inside
        kept = tuple(along[skipped:] for along in places)
        out[kept] = new[skipped:].clamp(-domain.ceiling, domain.ceiling).to(out.dtype)
        if domain.symmetric:
            out.mT[kept] = out[kept]
    return out.expand(x.shape) if out.shape != x.shape else out


def _concentrate(out: torch.Tensor, plants: Plants, gen: torch.Generator, skipped: int) -> None:
    """Concentrate probabilities along a dimension: a few distributions give nearly all to one drawn element."""
    domain = plants.domain
    logs = domain.sums_to_one is None
    dim = domain.log_sums_to_zero if domain.sums_to_one is None else domain.sums_to_one
    assert dim is not None
    view = out.movedim(dim, -1)
    count = max(1, min(plants.count, out.numel() // view.shape[-1] // 16))
    where = tuple(torch.randint(0, size, (count,), generator=gen, device=out.device) for size in view.shape[:-1])
    to = torch.randint(0, view.shape[-1], (count,), generator=gen, device=out.device)
    if skipped >= count:
        return
    rows = view[where].double() if where else view.double()[None]
    rows = rows.exp() if logs else rows
    rows /= plants.size
    rows[torch.arange(rows.shape[0], device=out.device), to[: rows.shape[0]]] += 1.0 - 1.0 / plants.size
    rows = (rows.log() if logs else rows).to(out.dtype)
    if where:
        view[tuple(along[skipped:] for along in where)] = rows[skipped:]
    else:
        view.copy_(rows[0])


def drawn_places(x: torch.Tensor, gen: torch.Generator, count: int) -> tuple[torch.Tensor, ...] | None:
    """Draw random places of elements that are finite and not zero; `None` where there are none."""
    tries = 16 * count + 256
    index = tuple(torch.randint(0, size, (tries,), generator=gen, device=x.device) for size in x.shape)
    drawn = x[index]
    good = (torch.isfinite(drawn) & (drawn != 0)).reshape(-1).nonzero().squeeze(1)[:count]
    if good.numel():
        return tuple(along[good] for along in index)
    found = ((x != 0) & torch.isfinite(x)).nonzero()
    return tuple(found[: 1 + found.shape[0] // 2].unbind(1)) if found.numel() else None


class RangeChecks(QuickDispatchMode):
    """Around a forward pass: whether it calls what depends on the range of its values.

    Such operators check it, which stops a GPU's context, or make whole numbers of it, which may be indices.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.removesuffix("_")
        given = args[0] if args else None
        if name in _CHECKED:
            self.found = True
        elif name in ("_to_copy", "to", "copy", "floor_divide"):
            floating = isinstance(given, torch.Tensor) and given.is_floating_point()
            whole = isinstance(made, torch.Tensor) and not made.is_floating_point() and made.dtype is not torch.bool
            self.found |= floating and whole
        return made
