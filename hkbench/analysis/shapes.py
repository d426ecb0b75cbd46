"""Further shapes of a problem: those that its file names, and hidden ones, which are drawn.

A hidden shape changes constants of the file that the shapes of the inputs depend on: those that its `SHAPES` name, else
those that `get_inputs` is seen to depend on. Drawn are sizes that no usual tile divides, one that is 1, a larger and a
smaller one. Where the reference does not take a shape (a number of channels that groups do not divide), another one is
drawn, whose sizes are multiples of 2, then of 4, and so on. It runs on the meta device for that, which computes shapes
and allocates nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from hkbench.analysis.reference import ProblemCode, Reference
from hkbench.errors import ProblemError
from hkbench.problems.sizes import Constants
from hkbench.protocol.wire import leaves
from hkbench.records import Problem, ShapeKind, SizeSet

HIDDEN = (ShapeKind.RAGGED, ShapeKind.ONE, ShapeKind.LARGER, ShapeKind.SMALLER)
GRAINS = (1, 1, 1, 2, 4, 8, 16, 32, 64)  #: the sizes drawn are odd multiples of these, in turn
MIN_BYTES = 1 << 22  #: of inputs, parameters and outputs that are always allowed
_META = torch.device("meta")
#: What a problem's code may raise that was not written for these constants, or not for tensors without contents.
_FAILS = (ProblemError, RuntimeError, TypeError, ValueError, AssertionError)

Form = tuple[tuple[tuple[int, ...], torch.dtype], ...]


@dataclass(frozen=True)
class Shape:
    """Values of a problem's constants, and where they come from."""

    constants: Constants
    kind: ShapeKind


class Shapes:
    """The further shapes of one problem, which is known to run at its sizes in force."""

    def __init__(self, problem: Problem, sizes: SizeSet, growth: float, most: int | None = None) -> None:
        """Look at how the inputs depend on the constants.

        `growth`: of one size of a hidden shape over the one in force, and of the bytes of inputs, parameters and
        outputs, at most. `most`: bytes that it may need if the sizes in force need less.
        """
        self._problem, self._sizes = problem, sizes
        self._growth, self._most = growth, most
        self._bytes: int | None = None  # that the sizes in force make; None: nobody knows before it runs
        self._base: dict[str, int] = {}  # the constants that may be drawn
        self.why: str | None = None  #: nothing can be drawn
        try:
            base = ProblemCode(problem, sizes, _META)
            inputs = _form(base.inputs(0))
        except _FAILS as error:
            self.why = f"get_inputs() needs real numbers, so that nobody knows what changes its shapes ({error})"
            return
        self._bytes = self._needed({})
        named = {name for shape in problem.shapes for name in shape}
        self._base = {
            name: value
            for name, value in base.integers.items()
            if (name in named if named else self._changes_inputs(name, value, inputs))
        }
        if not self._base:
            self.why = "no whole number among the file's constants changes the shapes of its inputs"

    def visible(self, count: int, rng: random.Random) -> list[Shape]:
        """Return `count` of the file's own further shapes, in an order that is drawn."""
        named = [Shape(shape, ShapeKind.NAMED) for shape in self._problem.shapes]
        return rng.sample(named, min(count, len(named)))

    def hidden(self, rng: random.Random) -> Iterator[Iterator[Shape]]:
        """Yield for one kind after the other, without end, shapes to be tried until one can be used."""
        while self._base:
            for kind in rng.sample(HIDDEN, len(HIDDEN)):
                yield self._drawn(kind, random.Random(rng.randrange(1 << 32)))

    def _drawn(self, kind: ShapeKind, rng: random.Random) -> Iterator[Shape]:
        """Draw shapes of a kind that the reference takes, as far as that is seen without running it."""
        for grain in GRAINS:
            sizes = _sizes(kind, self._base, grain, self._growth, rng)
            changed = {name: size for name, size in sizes.items() if size != self._base[name]}
            if changed and self._fits(changed):
                yield Shape(changed, kind)

    def _fits(self, constants: Constants) -> bool:
        """Return whether the reference takes these constants and needs no more memory than it may."""
        if self._bytes is None:  # its code needs real numbers: running it will tell
            return True
        needed = self._needed(constants)
        most = self._growth * self._bytes
        if self._most is not None:
            most = min(most, max(self._most, self._bytes))
        return needed is not None and needed <= max(MIN_BYTES, most)

    def _needed(self, constants: Constants) -> int | None:
        """Return the bytes of inputs, parameters and outputs; None where the code fails on the meta device."""
        try:
            with _META:
                reference = Reference(self._problem, self._sizes, _META, 0, constants)
            inputs = reference.inputs(0)
            held = [*(leaf for _, leaf in leaves(inputs, "")), *reference.model.state_dict().values()]
            held += reference.native(inputs).values()
        except _FAILS:
            return None
        return sum(leaf.nbytes for leaf in held if isinstance(leaf, torch.Tensor))

    def _changes_inputs(self, name: str, value: int, usual: Form) -> bool:
        try:
            inputs = ProblemCode(self._problem, self._sizes, _META, {name: value + 1}).inputs(0)
        except _FAILS:
            return False
        return _form(inputs) != usual


def _form(inputs: object) -> Form:
    tensors = (leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor))
    return tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)


def _sizes(kind: ShapeKind, base: Mapping[str, int], grain: int, growth: float, rng: random.Random) -> dict[str, int]:
    """Draw a size for some of the constants, at least one; the others stay."""
    names = sorted(base)
    one = rng.choice(names)
    some = {one, *(name for name in names if rng.random() < 0.5)}
    sizes = dict(base)
    for name in some:
        share = rng.uniform(0.12, 0.5) if kind is ShapeKind.SMALLER else rng.uniform(0.4, 1.0)
        sizes[name] = _ragged(base[name] * share, grain)
    if kind is ShapeKind.ONE:
        sizes[one] = 1
    if kind is ShapeKind.LARGER:
        sizes[one] = _ragged(max(base[one] + 1, base[one] * rng.uniform(1.1, growth)), grain)
    return sizes


def _ragged(size: float, grain: int) -> int:
    """Return an odd multiple of the grain, near to a size."""
    return (int(size / grain) | 1) * grain
