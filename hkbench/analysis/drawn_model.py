"""The reference with parameters under which its outputs tell a right answer from a wrong one.

A model may draw a parameter of one element: a bias before a clamp, say. With every third draw of it each output of
KernelBench's problem 58 of level 2 is -1 or 1, whatever the kernel computes before, and a wrong one passes all trials.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

from hkbench.analysis.input_distributions import DEGENERATE, Shape, summarise
from hkbench.analysis.reference import Reference

MAX_DRAWS = 8
MAX_SECONDS = 5.0  #: after which no further draw is begun: a problem whose outputs are always of one value stays so
FEW = 64  #: elements of a parameter, of which another draw may be quite another one
NOTE = "outputs are nearly all one value with each draw of the parameters: mistakes may not show"


def draw_model(
    make: Callable[[int], Reference],
    draw_seed: Callable[[], int],
    unfit: Callable[[Reference], str | None] | None = None,
    max_draws: int = MAX_DRAWS,
) -> tuple[Reference, int, str | None]:
    """Return the reference that one of several seeds makes, that seed, and what speaks against it.

    `unfit` returns that: None for a good one, NOTE if another draw may be a better one, anything else if no draw is.
    By default a model without parameters, or without floating outputs, is taken as it is.

    Raises:
        ProblemError, torch.OutOfMemoryError: the problem's own code fails.
    """
    unfit = unfit or partial(_unfit, draw_seed)
    ends = time.monotonic() + MAX_SECONDS
    for draw in count(1):
        seed = draw_seed()
        reference = make(seed)
        why = unfit(reference)
        if why != NOTE or draw == max_draws or not _draws_differ(reference) or time.monotonic() > ends:
            return reference, seed, why
        reference.forget()
        del reference  # the next one may take as much memory
    raise AssertionError("it returns")


def _unfit(draw_seed: Callable[[], int], reference: Reference) -> str | None:
    if not reference.has_parameters:
        return None
    return NOTE if says_little(summarise(reference.native(reference.inputs(draw_seed())))) else None


def says_little(shapes: Mapping[str, Shape]) -> bool:
    """Return whether every output is nearly of one value."""
    return bool(shapes) and all(shape.commonest > DEGENERATE for shape in shapes.values())


def _draws_differ(reference: Reference) -> bool:
    """Return whether other parameters may change what outputs are like: large ones have a distribution, not a value."""
    return any(parameter.numel() <= FEW for parameter in reference.model.parameters())
