"""Whether what the runner says of a candidate's outputs has the form of the reference's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from hkbench.analysis.reference import Leaves
from hkbench.evaluation.arena import overlaps
from hkbench.protocol.memory import span
from hkbench.protocol.messages import Object
from hkbench.records import FailureKind

#: Places in memory that an output may lie across, as a multiple of its elements: two dimensions padded to twice their
#: length. It bounds what the evaluator allocates to read them, or to measure how long a copy of such strides takes.
MAX_SPREAD = 4
FREE_PLACES = 1 << 24  #: a small output may lie in any buffer up to this size

Problem = tuple[FailureKind, str] | None


@dataclass(frozen=True)
class Leaf:
    """An output tensor in the form of the reference's, which has been checked."""

    path: str
    shape: list[int]
    strides: list[int]
    address: object  #: where it lies in the runner, as that says; of an output that is left there


def leaves_of(described: Iterable[Object], native: Leaves) -> list[Leaf]:
    """Return the tensors among described outputs of which `form_mismatch` says nothing."""
    return [
        Leaf(path, list(leaf.shape), strides_of(item.get("strides"), leaf.dim()) or [], item.get("address"))
        for item, (path, leaf) in zip(described, native.items(), strict=True)
        if isinstance(leaf, torch.Tensor)
    ]


def max_reach(plain: int, elements: int) -> int:
    """Return across how many places in memory an output may lie whose reference lies across `plain` of them."""
    return max(plain, MAX_SPREAD * elements, FREE_PLACES)


def strides_of(told: object, dimensions: int) -> list[int] | None:
    """Return strides in elements; None where they are not those of a tensor with so many dimensions."""
    if not isinstance(told, list) or len(told) != dimensions:
        return None
    found = [stride for stride in told if type(stride) is int and stride >= 0]
    return found if len(found) == dimensions else None


def form_mismatch(described: object, native: Leaves, device: str, may_share: bool) -> Problem:
    """Return why the described outputs do not have the form of the reference's, or None.

    `may_share`: the reference's own outputs lie in memory of its inputs, so the candidate's may.
    """
    if not isinstance(described, list) or not all(isinstance(item, dict) for item in described):
        return FailureKind.PROTOCOL, "the runner did not describe the outputs"
    paths = [item.get("path") for item in described]
    if paths != list(native):
        return FailureKind.WRONG_TYPE, f"forward returns {paths}, the reference {list(native)}"
    checks: tuple[Callable[[Object, object, str], Problem], ...] = (_type_mismatch, _tensor_mismatch)
    for item, leaf in zip(described, native.values(), strict=True):
        for check in checks:
            found = check(item, leaf, device)
            if found is not None:
                return found
    return None if may_share else _aliased(described)


def _aliased(described: list[Object]) -> Problem:
    for item in described:
        shares = item.get("shares")
        if shares == "input":
            return FailureKind.ALIASED_OUTPUT, f"{item['path']} lies in the memory of an input"
        if shares is not None:
            message = f"{item['path']} lies in the memory of the result before it, which the caller may still hold"
            return FailureKind.ALIASED_OUTPUT, message
    return None


def _type_mismatch(item: Object, leaf: object, _device: str) -> Problem:
    expected = "Tensor" if isinstance(leaf, torch.Tensor) else type(leaf).__name__
    if item.get("type") != expected:
        return FailureKind.WRONG_TYPE, f"{item['path']} is of type {item.get('type')}, expected {expected}"
    if not isinstance(leaf, torch.Tensor) and item.get("value") != leaf:
        return FailureKind.WRONG_VALUES, f"{item['path']} is {item.get('value')!r}, expected {leaf!r}"
    return None


def _tensor_mismatch(item: Object, leaf: object, device: str) -> Problem:
    if not isinstance(leaf, torch.Tensor):
        return None
    path = item["path"]
    dtype = str(leaf.dtype).removeprefix("torch.")
    if item.get("dtype") != dtype:
        return FailureKind.WRONG_DTYPE, f"{path} has dtype {item.get('dtype')}, expected {dtype}"
    if item.get("shape") != list(leaf.shape):
        return FailureKind.WRONG_SHAPE, f"{path} has shape {item.get('shape')}, expected {list(leaf.shape)}"
    if item.get("device") != device:
        return FailureKind.WRONG_TYPE, f"{path} is on device {item.get('device')}, expected {device}"
    shape, told = list(leaf.shape), item.get("strides")
    strides = strides_of(told, len(shape))
    if strides is None:
        return FailureKind.WRONG_STRIDES, f"{path} has strides {told!r}, which are not those of a tensor of its shape"
    if not overlaps(leaf.shape, leaf.stride()) and overlaps(shape, strides):
        return FailureKind.WRONG_STRIDES, f"{path} has strides {strides}: several elements share one place in memory"
    reach = span(shape, strides)
    most = max_reach(span(leaf.shape, leaf.stride()), leaf.numel())
    if reach > most:
        message = f"{path} has strides {strides} and lies across {reach} places in memory for {leaf.numel()} elements"
        return FailureKind.WRONG_STRIDES, f"{message}; at most {most} are allowed. Return it contiguous"
    return None
