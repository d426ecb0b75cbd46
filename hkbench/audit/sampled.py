"""Null controls that read a part of the numbers: three quarters, every second one, the first half.

Either the inputs are such a part and more of the same, or a statistic inside of the reference (a sum, a mean, a norm, a
softmax's denominator) is that of a part while everything else sees all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from hkbench.analysis.reference import Leaves
from hkbench.audit.controls import Control, Run, Trial
from hkbench.audit.formulas import Formula, Replaced, norms
from hkbench.audit.records import ControlClass

aten = torch.ops.aten
MIN_ELEMENTS = 8  #: elements of which a part can be taken
Part = Callable[[int], range]  #: what is read of so many elements

PARTS: dict[str, Part] = {
    "three quarters": lambda n: range(3 * n // 4),
    "every second": lambda n: range(0, n, 2),
    "the first half": lambda n: range(n // 2),
}


def input_parts(inputs: Sequence[Any]) -> Iterator[Control]:
    """Yield controls that read a part of an input, or of all dimensions of one size; it stands in for the rest."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    sizes = sorted({extent for tensor in tensors for extent in tensor.shape if extent >= MIN_ELEMENTS})
    for name, part in PARTS.items():

        def whole(trial: Trial, run: Run, part: Part = part) -> Leaves | None:
            return run([_of_all(value, part) for value in trial.inputs])

        yield Control(f"{name} of the input", ControlClass.NULL, whole)
        for size in sizes:

            def along(trial: Trial, run: Run, part: Part = part, size: int = size) -> Leaves | None:
                return run([_of_dimension(value, part, size) for value in trial.inputs])

            yield Control(f"{name} of the dimension of {size}", ControlClass.NULL, along)


def _filled(part: Part, size: int, device: torch.device) -> torch.Tensor:
    """Return for each place the one read in its stead: what is read, and then the same from the beginning."""
    read = torch.tensor(part(size), device=device)
    if part is PARTS["every second"]:
        return torch.arange(size, device=device) // 2 * 2
    return read[torch.arange(size, device=device) % len(read)]


def _of_all(value: Any, part: Part) -> Any:
    if not isinstance(value, torch.Tensor) or value.numel() < MIN_ELEMENTS:
        return value
    return value.reshape(-1)[_filled(part, value.numel(), value.device)].reshape(value.shape)


def _of_dimension(value: Any, part: Part, size: int) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    for dim in [dim for dim, extent in enumerate(value.shape) if extent == size]:
        value = value.index_select(dim, _filled(part, size, value.device))
    return value


def statistic_parts() -> Iterator[Control]:
    """Yield controls with statistics of a part, in operators that PyTorch's dispatcher sees."""
    for name, part in PARTS.items():

        def make(trial: Trial, run: Run, part: Part = part) -> Leaves | None:
            with Replaced(_table(part)) as mode:
                answer = run(trial.inputs)
            return answer if mode.met else None

        yield Control(f"statistics of {name} of the elements", ControlClass.NULL, make)


def _table(part: Part) -> dict[Any, Formula]:
    def read(x: torch.Tensor, dims: Any) -> tuple[torch.Tensor, float] | None:
        """Return the part of the longest dimension, and how many times as many elements there are."""
        every = range(x.dim()) if dims is None or not list(dims) else [dim % max(1, x.dim()) for dim in dims]
        longest = max(every, key=x.size, default=None)
        if longest is None or x.size(longest) < MIN_ELEMENTS:
            return None
        places = torch.tensor(part(x.size(longest)), device=x.device)
        return x.index_select(longest, places), x.size(longest) / len(places)

    def reduction(op: Any, scaled: Callable[[float, Sequence[Any]], float], at: int = 1) -> Formula:
        """Return the operator on the part; its result times `scaled` of how many times as many elements there are."""

        def formula(x: torch.Tensor, *args: Any, **more: Any) -> Any:
            dims = args[at - 1] if len(args) >= at and not isinstance(args[at - 1], int) else more.get("dim")
            found = read(x, dims)
            if found is None:
                return NotImplemented
            result = op(found[0], *args, **more)
            factor = scaled(found[1], args)
            return result if factor == 1.0 else result * factor

        return formula

    def once(_times: float, _args: Sequence[Any]) -> float:
        return 1.0

    def power(times: float, args: Sequence[Any]) -> float:
        order = float(args[0]) if args else 2.0
        return times ** (1.0 / order) if order and math.isfinite(order) else 1.0

    def loss(op: Any) -> Formula:
        def formula(x: torch.Tensor, y: torch.Tensor, reduction: int = 1, *rest: Any) -> Any:
            left, right = (read(one, None) for one in (x, y))
            if reduction == 0 or left is None or right is None or x.shape != y.shape:
                return NotImplemented
            result = op(left[0], right[0], reduction, *rest)
            return result if reduction == 1 else result * left[1]

        return formula

    def softmax(x: torch.Tensor, dim: int, *_: Any, logarithm: bool = False) -> Any:
        found = read(x, [dim])
        if found is None:
            return NotImplemented
        top = x.amax(dim, keepdim=True)
        total = (found[0] - top).exp().sum(dim, keepdim=True) * found[1]
        return x - top - total.log() if logarithm else (x - top).exp() / total

    def statistics(x: torch.Tensor, dims: list[int]) -> tuple[Any, Any]:
        found = read(x, dims)
        some = x if found is None else found[0]
        return some.mean(dims, keepdim=True), some.var(dims, correction=0, keepdim=True)

    return {
        aten.mean.default: reduction(aten.mean.default, once),
        aten.mean.dim: reduction(aten.mean.dim, once),
        aten.sum.default: reduction(aten.sum.default, lambda times, _: times),
        aten.sum.dim_IntList: reduction(aten.sum.dim_IntList, lambda times, _: times),
        aten.var.correction: reduction(aten.var.correction, once),
        aten.linalg_vector_norm.default: reduction(aten.linalg_vector_norm.default, power, at=2),
        aten.mse_loss.default: loss(aten.mse_loss.default),
        aten.smooth_l1_loss.default: loss(aten.smooth_l1_loss.default),
        aten.huber_loss.default: loss(aten.huber_loss.default),
        aten._softmax.default: softmax,
        aten._log_softmax.default: lambda x, dim, *_: softmax(x, dim, logarithm=True),
        **norms(statistics),
    }
