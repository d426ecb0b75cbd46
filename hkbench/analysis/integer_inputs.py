"""Integer inputs as in production: few values often (Zipf), repeated, sorted, all equal, and ragged lengths.

`torch.randint` gives every token, label or index about as often as any other. A kernel can rely on that without being
right: atomics that hardly ever meet, a cache that always misses, rows of one length. So in some trials the values of an
integer tensor are drawn anew, within the range that the problem's own have and in its dtype. What those show of their
structure is kept: sorted ones (offsets) stay sorted with the same ends, distinct ones (a permutation) only change their
order. What `forward` calls lengths becomes ragged. Booleans, and tensors of one value, stay as they are.
"""

from __future__ import annotations

import inspect
import math
import re
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from hkbench.protocol.memory import mapped
from hkbench.protocol.wire import leaves

KINDS = ("Zipf", "repeated", "sorted", "all equal")
ZIPF_EXPONENT = 1.2
RUN = 16  #: elements of a row that are the same, where values are repeated
BY_CHANCE = 0.01  #: probability of distinct values above which they say nothing of a permutation
SHORT = 4.0  #: power of a uniform share of the longest that a ragged length is
_LENGTHS = re.compile(r"(^|_|seq)len(gth)?s?($|_)")  #: in the name of a parameter of `forward`
_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def drawn_kinds(trials: int) -> list[str | None]:
    """Draw how the integer inputs of each trial are made: of all but the first by one kind after the other."""
    kinds = secrets.SystemRandom().sample(KINDS, len(KINDS))
    return [None, *(kinds[number % len(kinds)] for number in range(trials - 1))]


def has_integers(inputs: object) -> bool:
    """Return whether some tensor among the inputs can be drawn anew."""
    return any(isinstance(leaf, torch.Tensor) and _varies(leaf) for _, leaf in leaves(inputs, ""))


def lengths_of(forward: Callable[..., object]) -> frozenset[int]:
    """Return the numbers of the arguments that hold lengths, by their names."""
    names = inspect.signature(forward).parameters
    return frozenset(number for number, name in enumerate(names) if _LENGTHS.search(name))


def skewed(kind: str, inputs: list[object], seed: int, lengths: frozenset[int] = frozenset()) -> list[Any]:
    """Return the inputs with their integer tensors drawn anew; `inputs` is emptied. Deterministic in `seed`.

    The arguments whose numbers are in `lengths` hold lengths, and become ragged whatever the kind.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind {kind!r} of integers; there are {', '.join(KINDS)}")
    known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    generator = torch.Generator().manual_seed(seed)

    def drawn(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in known:  # one tensor given twice stays one; held, so that its id is its own
            new = _drawn(kind, tensor, generator, number in lengths) if _varies(tensor) else tensor
            known[id(tensor)] = (tensor, new)
        return known[id(tensor)][1]

    inputs.reverse()
    return [mapped(inputs.pop(), partial(drawn, number)) for number in range(len(inputs))]


def _varies(x: torch.Tensor) -> bool:
    dense = x.dtype in _DTYPES and x.layout is torch.strided and x.numel() > 1
    return dense and x.device.type != "meta" and bool(x.min() < x.max())


def _drawn(kind: str, x: torch.Tensor, gen: torch.Generator, lengths: bool) -> torch.Tensor:
    """Draw on the host, where every device's tensor gets the same values by one seed."""
    own = x.detach().cpu()
    low, high = int(own.min()), int(own.max())
    rows = own.reshape(-1, own.shape[-1]).long()
    if lengths:
        new = _ragged(rows, low, high, gen)
    elif rows.shape[1] > 2 and (rows[:, 1:] >= rows[:, :-1]).all():
        new = _offsets(rows, gen)
    elif _distinct(rows, high - low + 1):
        new = rows.sort(dim=1).values if kind == "sorted" else rows.flip(1)
    else:
        new = _values(kind, rows, low, high, gen)
    made = torch.empty_like(x)
    return made.copy_(new.reshape(x.shape).to(x.dtype))


def _values(kind: str, rows: torch.Tensor, low: int, high: int, gen: torch.Generator) -> torch.Tensor:
    count = high - low + 1
    if kind == "all equal":
        return torch.full_like(rows, low + int(torch.randint(count, (), generator=gen)))
    if kind == "sorted":
        return rows.reshape(-1).sort().values.reshape(rows.shape)
    if kind == "repeated":
        runs = -(-rows.shape[1] // RUN)
        few = torch.randint(low, high + 1, (rows.shape[0], runs), generator=gen)
        return few.repeat_interleave(RUN, dim=1)[:, : rows.shape[1]]
    return low + _zipf(rows.numel(), count, gen).reshape(rows.shape)


def _zipf(number: int, count: int, gen: torch.Generator) -> torch.Tensor:
    """Return ranks 0..count-1, rank r about (r + 1)^-ZIPF_EXPONENT as often as rank 0, in an order of ranks drawn anew.

    By the inverse of the continuous distribution, which needs no table of all ranks.
    """
    uniform = torch.rand(number, generator=gen, dtype=torch.float64)
    power = 1.0 - ZIPF_EXPONENT
    ranks = (1.0 + uniform * (math.pow(count + 1.0, power) - 1.0)).pow(1.0 / power).long() - 1
    step = _coprime(count, gen)  # spreads neighbouring ranks over the range
    first = int(torch.randint(count, (), generator=gen))
    return (first + ranks.clamp_(0, count - 1) * step) % count


def _coprime(count: int, gen: torch.Generator) -> int:
    while True:
        step = 1 + int(torch.randint(min(count, 1 << 20), (), generator=gen))
        if math.gcd(step, count) == 1:
            return step


def _ragged(rows: torch.Tensor, low: int, high: int, gen: torch.Generator) -> torch.Tensor:
    """Return lengths of which most are short, one of each row is the longest and another one the shortest."""
    new = low + (torch.rand(rows.shape, generator=gen, dtype=torch.float64).pow_(SHORT) * (high - low)).long()
    longest, shortest = torch.randperm(rows.shape[1], generator=gen)[[0, -1]].tolist()
    new[:, shortest] = low
    new[:, longest] = high
    return new


def _offsets(rows: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
    """Return ascending rows with the same ends: the distances between neighbours are ragged lengths."""
    ends = rows[:, :1], rows[:, -1:]
    shares = torch.rand(rows.shape[0], rows.shape[1] - 2, generator=gen, dtype=torch.float64).pow_(SHORT)
    inner = (ends[0] + shares * (ends[1] - ends[0])).long().sort(dim=1).values
    return torch.cat((ends[0], inner, ends[1]), dim=1)


def _distinct(rows: torch.Tensor, count: int) -> bool:
    """Return whether the values of each row are distinct, and hardly by chance: duplicates may not be allowed then."""
    ordered = rows.sort(dim=1).values
    if bool((ordered[:, 1:] == ordered[:, :-1]).any()):
        return False
    pairs = rows.shape[0] * rows.shape[1] * (rows.shape[1] - 1) / 2
    return math.exp(-pairs / count) < BY_CHANCE or rows.numel() == count
