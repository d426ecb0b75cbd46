"""The least time that a device can take for one call of a reference: bytes over bandwidth, operations over peak rate.

A lower bound for every honest kernel, not an estimate: whatever an honest kernel might do without is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from hkbench.judge import domains
from hkbench.judge.reference import Leaves, Reference
from hkbench.records import DeviceFacts, Floor
from hkbench.runner.memory import mapped
from hkbench.runner.wire import leaves

#: Faster than MARGIN * floor is impossible. The flush writes twice the last-level cache, but under random replacement
#: a share of e^-2 = 13.5 % of the old lines outlives it and need not be read again; and Strassen's scheme saves 1/8 of
#: the multiplications a level, two levels 23 %. A quarter covers either.
MARGIN = 0.75

PROBES = 12  #: of a tensor of which a quarter does not matter, 12 random places matter in 3 % of all cases
#: Share of a parameter's bytes that a kernel has to read: derived copies may be cached in fewer bits, but the
#: tolerances leave no room for half as many.
PARAMETER_SHARE = 0.75

#: One of these, and nothing but what is in `_HARMLESS`: then every operand and every product is needed. Convolutions
#: are not here: Winograd's and Fourier's ways need a fraction of the multiplications. Attention is not: a kernel that
#: has the scores may leave out what their softmax makes zero.
_DENSE = frozenset({"mm", "bmm", "addmm", "baddbmm"})
_MOVES = {"t", "transpose", "permute", "view", "_unsafe_view", "unsqueeze", "squeeze", "detach", "alias", "clone"}
_ELEMENTWISE = {"_to_copy", "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "neg", "relu", "relu_", "gelu"}
_ELEMENTWISE |= {"tanh", "sigmoid", "silu", "erf", "exp", "pow", "leaky_relu", "softplus", "expand"}
_HARMLESS = frozenset(_MOVES | _ELEMENTWISE)


def least_time(reference: Reference, inputs: list[Any], native: Leaves, facts: DeviceFacts) -> Floor | None:
    """The floor of one call whose inputs have been flushed from the caches; `None` where no peaks are known.

    Bytes: of those floating tensors of which every probed element changes the outputs, and of outputs beyond what the
    last-level cache can hold back. Not counted: integers, what is constant, made of a few codes or mostly zeros; half
    of a symmetric matrix. Parameters count for a single dense operation only: others can be folded and cached.
    Operations (a multiplication and an addition are two): of a single dense product of unstructured operands.
    Runs the reference some `PROBES` times per input.
    """
    if facts.bandwidth is None or facts.llc_bytes is None:
        return None
    buffers = {name: value.clone() for name, value in reference.model.named_buffers()}
    try:
        needed = _input_bytes(reference, inputs, native)
        operations = _operations(reference, inputs, native)
        written = _output_bytes(reference, inputs)
    finally:
        for name, value in reference.model.named_buffers():
            value.copy_(buffers[name])  # statistics that forward updates have seen what was planted
    if operations is not None:
        parameters = _distinct(list(reference.model.parameters()))
        needed += int(PARAMETER_SHARE * sum(_bytes(p.detach()) for p in parameters))
    needed += max(0, written - facts.llc_bytes)
    by_bytes = needed / facts.bandwidth
    # Any dtype's rate: float32 products can be put together from bfloat16 ones.
    rate = max(facts.peak_flops.values(), default=None)
    by_operations = operations / rate if operations is not None and rate else 0.0
    return Floor(
        seconds=max(by_bytes, by_operations),
        bytes=needed,
        operations=operations,
        bound="operations" if by_operations > by_bytes else "bytes",
    )


def _input_bytes(reference: Reference, inputs: list[Any], native: Leaves) -> int:
    if _differ(reference.native(inputs), native):
        return 0  # the reference does not repeat itself (dropout, atomics): no probe would tell anything
    generator = torch.Generator().manual_seed(0)
    return sum(
        size
        for tensor in _distinct([leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)])
        if (size := _bytes(tensor)) and _matters(tensor, lambda: reference.native(inputs), native, generator)
    )


def _distinct(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """One tensor for each storage, the smallest: views may overlap, and what is shared is read once."""
    chosen: dict[int, torch.Tensor] = {}
    for tensor in sorted(tensors, key=lambda t: -t.numel()):
        chosen[tensor.untyped_storage().data_ptr()] = tensor
    return list(chosen.values())


def _bytes(tensor: torch.Tensor) -> int:
    """What has to be read of a tensor whose elements all matter; 0 where that cannot be said."""
    for dim in range(tensor.dim()):
        if tensor.stride(dim) == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    domain = domains.inspect(tensor)
    if domain.fixed or domain.infinite or domain.ordered:
        return 0
    size = tensor.numel() * tensor.element_size()
    if domain.zeros:
        size = int(size * (1.0 - domain.zero_share))
    return size // 2 if domain.symmetric else size


def _matters(tensor: torch.Tensor, call: Callable[[], Leaves], native: Leaves, gen: torch.Generator) -> bool:
    """Whether every one of `PROBES` elements that are not zero, drawn at random, changes an output.

    A large number of either sign is planted, not NaN: times zero, or beside a mask of -10000, NaN would come through
    although an honest kernel need not read the element.
    """
    large = 30.0 * float(torch.nan_to_num(tensor).abs().max())
    large = min(large, 0.1 * torch.finfo(tensor.dtype).max)
    probes = 0
    for _ in range(4 * PROBES):
        index = tuple(int(torch.randint(0, size, (), generator=gen)) for size in tensor.shape)
        old = tensor[index].clone()
        if float(old) == 0.0:
            continue
        changed = False
        try:
            for value in (large, -large):
                tensor[index] = value
                changed = changed or _differ(call(), native)
                if changed:
                    break
        finally:
            tensor[index] = old
        if not changed:
            return False
        probes += 1
        if probes == PROBES:
            return True
    return False


def _differ(made: Leaves, native: Leaves) -> bool:
    for path, leaf in native.items():
        other = made.get(path)
        if not isinstance(leaf, torch.Tensor) or not isinstance(other, torch.Tensor) or leaf.shape != other.shape:
            return True
        if not bool(((leaf == other) | ((leaf != leaf) & (other != other))).all()):
            return True
    return False


def _output_bytes(reference: Reference, inputs: list[Any]) -> int:
    """Of outputs with memory of their own: what lies in an input's or a parameter's need not be written."""
    with torch.no_grad():
        copies = mapped(inputs, torch.clone)
        held = {t.untyped_storage().data_ptr() for _, t in leaves(copies, "") if isinstance(t, torch.Tensor)}
        held |= {t.untyped_storage().data_ptr() for t in reference.model.state_dict().values()}
        made = [leaf for _, leaf in leaves(reference.model(*copies), "output") if isinstance(leaf, torch.Tensor)]
    total = 0
    for leaf in _distinct(made):
        if leaf.untyped_storage().data_ptr() not in held:
            total += min(leaf.numel() * leaf.element_size(), leaf.untyped_storage().nbytes())
    return total


class _Record(TorchDispatchMode):
    """Names of the operators called, and the operands and result of the dense ones."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []
        self.dense: list[tuple[tuple[Any, ...], torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.names.append(name)
        if name in _DENSE:
            self.dense.append((args, result))
        return result


def _operations(reference: Reference, inputs: list[Any], native: Leaves) -> int | None:
    """Of the one dense product that the reference is, or None if it is anything else."""
    copies = mapped(inputs, torch.clone)
    record = _Record()
    with torch.no_grad(), FlopCounterMode(display=False) as counter, record:
        reference.model(*copies)
    outputs = [leaf for leaf in native.values() if isinstance(leaf, torch.Tensor)]
    if len(record.dense) != 1 or len(outputs) != 1 or not set(record.names) <= _DENSE | _HARMLESS:
        return None
    (args, result) = record.dense[0]
    if outputs[0].numel() != result.numel() or len(counter.get_flop_counts()["Global"]) != 1:
        return None
    given = [t for _, t in leaves(copies, "") if isinstance(t, torch.Tensor)]
    given += [p.detach() for p in reference.model.parameters()]
    storages = {t.untyped_storage().data_ptr(): t.numel() for t in given}
    factors = [arg for arg in args if isinstance(arg, torch.Tensor)][-2:]
    if factors[0].untyped_storage().data_ptr() == factors[1].untyped_storage().data_ptr():
        return None  # a @ a.T is symmetric: half of it will do
    for factor in factors:
        # Computed or expanded factors may have low rank: (u v^T) @ b takes no matrix product.
        if storages.get(factor.untyped_storage().data_ptr(), 0) < factor.numel() or 0 in factor.stride():
            return None
        domain = domains.inspect(factor)
        if domain.fixed or domain.zeros or domain.symmetric or domain.infinite:
            return None
    return int(counter.get_total_flops())
