"""Make a problem small enough for an audit on a CPU, by its own constants.

The rule: of the whole numbers that the file assigns at its top level (also inside tuples), the largest is halved, again
and again, until inputs, outputs and parameters together have fewer than `MAX_ELEMENTS` elements and a forward pass
takes fewer than `MAX_OPERATIONS` multiplications and additions in matrix products and convolutions. Numbers below
`MIN_SIZE` stay (kernel sizes, strides, dimensions). Where a half does not fit, all equal numbers are halved together,
and where that does not fit either, the number stays: the model
is built and run on the meta device after each step, which computes shapes and allocates nothing.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from hkbench.analysis.reference import Reference
from hkbench.errors import ProblemError
from hkbench.protocol.wire import leaves
from hkbench.records import Problem, SizeSet

MAX_ELEMENTS = 1 << 20
MAX_OPERATIONS = 1 << 29
MIN_SIZE = 16

Constant = int | tuple[int, ...]


@dataclass(frozen=True)
class Size:
    """Elements of inputs, outputs and parameters; operations of one forward pass, as torch counts them."""

    elements: int
    operations: int

    @property
    def small(self) -> bool:
        return self.elements < MAX_ELEMENTS and self.operations < MAX_OPERATIONS


def size_of(problem: Problem, sizes: SizeSet = SizeSet.FULL) -> Size:
    """Raise ProblemError when the problem's code fails on the meta device."""
    meta = torch.device("meta")
    counter = FlopCounterMode(display=False)
    try:
        with torch.device(meta):
            reference = Reference(problem, sizes, meta, seed=0)
        inputs = reference.inputs(0)
        with counter:
            outputs = reference.native(inputs)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ProblemError(f"{problem.path}: its size cannot be computed without allocating it: {error}") from error
    tensors: list[Any] = [leaf for _, leaf in leaves(inputs, "")]
    tensors += [*outputs.values(), *reference.model.state_dict().values()]
    elements = sum(leaf.numel() for leaf in tensors if isinstance(leaf, torch.Tensor))
    return Size(elements, int(counter.get_total_flops()))


def shrunk(problem: Problem) -> tuple[Problem, dict[str, str]]:
    """Return the problem at smaller sizes, and its changed constants, as "16384 -> 128".

    The returned problem's `source` has them assigned once more at its end. Raises ProblemError when the rule does not
    get it small enough.
    """
    constants = _constants(problem)
    first = dict(constants)
    fixed: set[tuple[str, int]] = set()
    current = problem
    size = size_of(problem)
    while not size.small:
        place = _largest(constants, fixed)
        if place is None:
            raise ProblemError(
                f"{problem.path}: still {size.elements:,} elements and {size.operations:,} operations after halving "
                "all constants that can be halved; audit it at full size on a larger machine"
            )
        for tried in (_halved(constants, [place]), _halved(constants, _equals(constants, place))):
            candidate = _assigned(problem, first, tried)
            try:
                size = size_of(candidate)
            except ProblemError:
                continue
            constants, current = tried, candidate
            break
        else:
            fixed.add(place)
    changed = {name: f"{first[name]} -> {value}" for name, value in constants.items() if value != first[name]}
    return current, changed


def _constants(problem: Problem) -> dict[str, Constant]:
    """Return what the file's own top-level assignments bind to whole numbers and tuples of them."""
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = ast.parse(problem.source)
    found: dict[str, Constant] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                try:
                    namespace[name] = eval(  # noqa: S307 - arithmetic on the file's own constants, and no builtins
                        compile(ast.Expression(value), str(problem.path), "eval"), {"__builtins__": {}}, namespace
                    )
                except Exception:  # noqa: BLE001, S112 - not arithmetic: whatever it is, it is not a size
                    continue
                items = _items(namespace[name])
                if items and all(type(item) is int for item in items):
                    found[name] = namespace[name]
    return found


def _largest(constants: dict[str, Constant], fixed: set[tuple[str, int]]) -> tuple[str, int] | None:
    """Return (name, place in its tuple) of the largest number that may still be halved; the first of equals."""
    best: tuple[str, int] | None = None
    most = MIN_SIZE - 1
    for name, value in constants.items():
        for place, item in enumerate(value if isinstance(value, tuple) else (value,)):
            if item > most and (name, place) not in fixed:
                best, most = (name, place), item
    return best


Place = tuple[str, int]


def _equals(constants: dict[str, Constant], place: Place) -> list[Place]:
    """Return all places that hold the same number: two names may stand for one size."""
    wanted = _items(constants[place[0]])[place[1]]
    return [(name, i) for name, value in constants.items() for i, item in enumerate(_items(value)) if item == wanted]


def _items(value: Constant) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _halved(constants: dict[str, Constant], places: list[Place]) -> dict[str, Constant]:
    changed = dict(constants)
    for name, number in places:
        value = changed[name]
        items = tuple(item // 2 if i == number else item for i, item in enumerate(_items(value)))
        changed[name] = items if isinstance(value, tuple) else items[0]
    return changed


def _assigned(problem: Problem, first: dict[str, Constant], constants: dict[str, Constant]) -> Problem:
    lines = [f"{name} = {value!r}" for name, value in constants.items() if value != first[name]]
    return problem.model_copy(update={"source": problem.source + "\n\n" + "\n".join(lines) + "\n"})
