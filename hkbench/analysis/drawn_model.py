"""The reference with parameters under which its outputs tell a right answer from a wrong one.

A model may draw a parameter of one element: a bias before a clamp, say. With every third draw of it each output of
KernelBench's problem 58 of level 2 is -1 or 1, whatever the kernel computes before, and a wrong one passes all trials.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hkbench.analysis.input_distributions import DEGENERATE, Shape, summarise
from hkbench.analysis.reference import Reference

MAX_DRAWS = 8
MAX_SECONDS = 5.0  #: after which no further draw is begun: a problem whose outputs are always of one value stays so


def draw_model(make: Callable[[int], Reference], draw_seed: Callable[[], int]) -> tuple[Reference, int, str | None]:
    """Return a reference that was made by one of several seeds, that seed, and what is to be said of its outputs.

    That is that they are of one value, nearly, with all seeds that were tried. Of a model without parameters, and of
    outputs that no number of is of a floating type, nothing is said.

    Raises:
        ProblemError, torch.OutOfMemoryError: the problem's own code fails.
    """
    ends = time.monotonic() + MAX_SECONDS
    for draw in range(1, MAX_DRAWS + 1):
        seed = draw_seed()
        reference = make(seed)
        if not reference.has_parameters:
            return reference, seed, None
        shapes = summarise(reference.native(reference.inputs(draw_seed())))
        if not says_little(shapes):
            return reference, seed, None
        if draw == MAX_DRAWS or time.monotonic() > ends:
            break
        reference.forget()
    return (
        reference,
        seed,
        f"outputs are nearly all one value with {draw} draws of the parameters: a mistake may not show",
    )


def says_little(shapes: Mapping[str, Shape]) -> bool:
    """Return whether every output is nearly of one value."""
    return bool(shapes) and all(shape.commonest > DEGENERATE for shape in shapes.values())
