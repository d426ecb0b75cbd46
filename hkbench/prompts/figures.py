"""Figures that templates show about a problem's tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hkbench.records import ProblemFacts, ScalarFact, TensorFact

_BYTES = {
    "float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint8": 1, "int8": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip


def tensors(facts: Iterable[TensorFact | ScalarFact]) -> list[TensorFact]:
    """Return only the tensors of `facts`."""
    return [fact for fact in facts if isinstance(fact, TensorFact)]


def describe(fact: TensorFact | ScalarFact) -> str:
    """Return one line: name, shape, dtype and, where they are not contiguous, strides in elements."""
    if isinstance(fact, ScalarFact):
        return f"{fact.name} = {fact.value}"
    layout = "" if fact.strides == contiguous(fact.shape) else f", strides {_tuple(fact.strides)}"
    return f"{fact.name}: {_tuple(fact.shape)} {fact.dtype}{layout}"


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides in elements of a dense row-major tensor, as torch counts them (a size of 0 as 1)."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def traffic_bytes(facts: ProblemFacts) -> int:
    """Return the bytes of all inputs, parameters and outputs, each once: the least a kernel has to move.

    Dtypes of unknown width count as 4 bytes.
    """
    all_of = [*tensors(facts.inputs), *facts.parameters, *tensors(facts.outputs)]
    return sum(math.prod(fact.shape) * _BYTES.get(fact.dtype, 4) for fact in all_of)


def least_ms(facts: ProblemFacts, bandwidth_gbs: float) -> float:
    """Return the milliseconds that `traffic_bytes` takes at `bandwidth_gbs` (10^9 bytes a second)."""
    return traffic_bytes(facts) / (bandwidth_gbs * 1e9) * 1e3


def dtypes(facts: ProblemFacts) -> list[str]:
    """Return the dtypes of inputs and parameters, in the order they first appear."""
    return list(dict.fromkeys(fact.dtype for fact in [*tensors(facts.inputs), *facts.parameters]))


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"
