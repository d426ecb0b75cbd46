"""Null controls: answers that are made without doing a problem's work.

Where one of them passes a check, so would a candidate that does the same. A control is given a trial's inputs and may
run the reference on other inputs or with other parameters; it never sees the trial's own expected outputs, but for
their form and (in `first_rows`) a part of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from hkbench.analysis.reference import Leaves, Reference
from hkbench.audit.records import ControlClass

Run = Callable[[list[Any]], Leaves]  #: the reference, in its own precision or in the higher one
Make = Callable[["Trial", Run], "Leaves | None"]  #: `None`: the control does not fit this problem

MAX_PARAMETERS = 16  #: that are left out one by one; a network of hundreds would take hours
KEPT = 4  #: earlier outputs that a candidate might have stored


@dataclass(frozen=True)
class Trial:
    """What a candidate would be given, and what is expected of it."""

    inputs: list[Any]
    native: Leaves
    precise: Leaves


@dataclass(frozen=True)
class Control:
    """`state`: parameters by name and the constant that takes their place."""

    name: str
    kind: ControlClass
    make: Make
    state: tuple[tuple[str, float], ...] = ()
    exact: bool = False  #: another result in exact arithmetic by construction: no need to look whether it is


def null_controls(reference: Reference, trial: Trial, earlier: list[Leaves]) -> Iterator[Control]:
    """Yield all null controls that could fit the problem.

    `earlier`: outputs for other inputs of its own distribution.
    """
    yield _each("zeros", lambda leaf, _path: torch.zeros_like(leaf))
    yield _each("ones", lambda leaf, _path: torch.ones_like(leaf))
    means = {path: _mean(leaf) for path, leaf in earlier[0].items() if isinstance(leaf, torch.Tensor)}
    yield _each("mean of earlier outputs", lambda leaf, path: torch.full_like(leaf, means[path]))
    yield _each("an earlier output", lambda leaf, path: _stored(leaf, earlier[0][path]))
    average = _average(earlier)
    yield _each("average of earlier outputs", lambda leaf, path: _stored(leaf, average[path]))
    yield _each("first rows only", _first_rows)
    for number, value in enumerate(trial.inputs):
        if isinstance(value, torch.Tensor):
            yield _input(number)
            yield from _without(number, value)
            yield from _unpaired(number, value, trial.inputs)
    yield from _halves(trial.inputs)
    yield from _parameters(reference)


def _each(name: str, change: Callable[[torch.Tensor, str], torch.Tensor | None]) -> Control:
    def make(trial: Trial, _run: Run) -> Leaves | None:
        return _by_leaf(trial, change)

    return Control(name, ControlClass.NULL, make, exact=True)


def _by_leaf(trial: Trial, change: Callable[[torch.Tensor, str], torch.Tensor | None]) -> Leaves | None:
    answer: Leaves = {}
    for path, leaf in trial.native.items():
        made = change(leaf, path) if isinstance(leaf, torch.Tensor) else leaf
        if made is None:
            return None
        answer[path] = made
    return answer


def _mean(leaf: torch.Tensor) -> float | int:
    """Return the mean of the finite elements; the nearest whole number where the output holds whole numbers."""
    if leaf.is_complex():
        leaf = torch.view_as_real(leaf)
    finite = leaf[torch.isfinite(leaf)].double()
    mean = float(finite.mean()) if finite.numel() else 0.0
    return mean if leaf.is_floating_point() else round(mean)


def _average(earlier: list[Leaves]) -> Leaves:
    """Average elementwise over the earlier outputs, where their shapes agree."""
    result: Leaves = {}
    for path, first in earlier[0].items():
        same = [leaves[path] for leaves in earlier]
        tensors = [leaf for leaf in same if isinstance(leaf, torch.Tensor)]
        if not isinstance(first, torch.Tensor) or any(leaf.shape != first.shape for leaf in tensors):
            result[path] = first
            continue
        total = torch.zeros_like(first, dtype=torch.complex128 if first.is_complex() else torch.float64)
        for leaf in tensors:
            total += leaf
        result[path] = (total / len(tensors)).to(first.dtype)
    return result


def _stored(leaf: torch.Tensor, stored: object) -> torch.Tensor | None:
    assert isinstance(stored, torch.Tensor)
    return stored if stored.shape == leaf.shape else None


def _first_rows(leaf: torch.Tensor, _path: str) -> torch.Tensor | None:
    """Return the right answer up to the middle, and memory that nobody wrote behind it."""
    if leaf.numel() < 2:
        return None
    answer = leaf.clone().contiguous()
    rest = answer.reshape(-1)[leaf.numel() // 2 :]
    if leaf.is_floating_point() or leaf.is_complex():
        rest.fill_(math.nan)
    else:
        rest.bitwise_not_() if leaf.dtype is torch.bool else rest.fill_(torch.iinfo(leaf.dtype).max)
    return answer


def _input(number: int) -> Control:
    def change(trial: Trial) -> Leaves | None:
        return _by_leaf(trial, lambda leaf, _path: fitted(trial.inputs[number], leaf))

    # Where ReLU is given positive numbers only this equals the reference, and still it is not its work.
    return Control(f"input {number}", ControlClass.NULL, lambda trial, _run: change(trial), exact=True)


def fitted(value: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor | None:
    """Return the input in the output's form: as it is, its first part or slice, or repeated; `None` if none fits."""
    shape = leaf.shape
    if value.dim() == len(shape) and all(have >= want for have, want in zip(value.shape, shape, strict=True)):
        return value[tuple(slice(0, want) for want in shape)].to(leaf.dtype)
    for dim in range(value.dim()):
        if value.dim() == len(shape) + 1 and value.shape[dim] and value.select(dim, 0).shape == shape:
            return value.select(dim, 0).to(leaf.dtype)
    try:
        return value.expand(shape).to(leaf.dtype)
    except RuntimeError:
        return None


def _with(inputs: list[Any], number: int, value: torch.Tensor) -> list[Any]:
    return [value if place == number else item for place, item in enumerate(inputs)]


def _without(number: int, value: torch.Tensor) -> Iterator[Control]:
    """Yield the control that ignores one input: a constant stands in for it."""
    if value.is_floating_point():
        fills: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [
            ("zeros", torch.zeros_like),
            ("its mean", lambda x: torch.full_like(x, float(x.double().mean()) if x.numel() else 0.0)),
        ]
    else:
        fills = [("zeros", torch.zeros_like)]
        if value.dtype is torch.bool:
            fills.append(("ones", torch.ones_like))
    for word, fill in fills:

        def make(trial: Trial, run: Run, fill: Callable[[torch.Tensor], torch.Tensor] = fill) -> Leaves | None:
            return run(_with(trial.inputs, number, fill(trial.inputs[number])))

        yield Control(f"input {number} taken as {word}", ControlClass.NULL, make)


def _unpaired(number: int, value: torch.Tensor, inputs: list[Any]) -> Iterator[Control]:
    """Yield the control that takes one input from other samples than the rest: what a loss is on average."""
    others = [item for place, item in enumerate(inputs) if place != number and isinstance(item, torch.Tensor)]
    if not others or not value.dim() or value.shape[0] < 2:
        return

    def make(trial: Trial, run: Run) -> Leaves | None:
        tensor = trial.inputs[number]
        return run(_with(trial.inputs, number, torch.roll(tensor, max(1, tensor.shape[0] // 3), 0)))

    yield Control(f"input {number} unpaired from the others", ControlClass.NULL, make)


def _halves(inputs: list[Any]) -> Iterator[Control]:
    """Yield the control that reads only half of a dimension, and takes the rest to be like it.

    All inputs' dimensions of one size are halved together, as the two of a matrix product are. A half put twice keeps
    every shape and scales sums, means and norms as an author would who computes half of them.
    """
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    for size in sorted({extent for tensor in tensors for extent in tensor.shape if extent >= 4}):

        def one(trial: Trial, run: Run, size: int = size) -> Leaves | None:
            return run(_doubled(trial.inputs, size, False))

        yield Control(f"half of the dimension of {size}", ControlClass.NULL, one)

        def both(trial: Trial, run: Run, size: int = size) -> Leaves | None:
            first, second = run(_doubled(trial.inputs, size, False)), run(_doubled(trial.inputs, size, True))
            return _joined(first, second, size)

        yield Control(f"each half of the dimension of {size} by itself", ControlClass.NULL, both)


def _doubled(inputs: list[Any], size: int, second: bool) -> list[Any]:
    def change(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        for dim in [dim for dim, extent in enumerate(value.shape) if extent == size]:
            half = size // 2
            start = size - half if second else 0
            part = value.narrow(dim, start, half)
            # An odd size keeps the element in the middle.
            middle = [value.narrow(dim, half, 1)] if size % 2 else []
            value = torch.cat([part, *middle, part], dim)
        return value

    return [change(value) for value in inputs]


def _joined(first: Leaves, second: Leaves, size: int) -> Leaves | None:
    """Join halves of `first` and `second` in the last dimension of that size of each output."""
    answer: Leaves = {}
    for path, left in first.items():
        right = second[path]
        if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
            answer[path] = left
            continue
        dims = [dim for dim, extent in enumerate(left.shape) if extent == size]
        if not dims or left.shape != right.shape:
            return None
        half = size // 2
        parts = [left.narrow(dims[-1], 0, half), right.narrow(dims[-1], half, size - half)]
        answer[path] = torch.cat(parts, dims[-1])
    return answer


def _parameters(reference: Reference) -> Iterator[Control]:
    """Yield controls that ignore parameters: each as zeros, each as ones, and all at what they mostly begin as."""
    names = [name for name, value in reference.model.named_parameters() if value.is_floating_point()]

    def make(trial: Trial, run: Run) -> Leaves | None:
        return run(trial.inputs)

    for name in names[:MAX_PARAMETERS]:
        for word, value in (("zeros", 0.0), ("ones", 1.0)):
            yield Control(f"{name} taken as {word}", ControlClass.NULL, make, ((name, value),))
    if len(names) > 1:
        plain = tuple((name, 0.0 if name.endswith("bias") else 1.0) for name in names)
        yield Control("all parameters taken as ones, biases as zeros", ControlClass.NULL, make, plain)
