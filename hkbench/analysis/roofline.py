"""The least time that a device can take for one call of a reference: bytes over bandwidth, operations over peak rate.

A lower bound for every honest kernel, not an estimate: whatever an honest kernel might do without is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from hkbench.analysis import domains
from hkbench.analysis.compare import CHUNKS
from hkbench.analysis.dispatch import QuickDispatchMode
from hkbench.analysis.reference import Leaves, Reference
from hkbench.errors import ProblemError
from hkbench.protocol.memory import mapped
from hkbench.protocol.wire import leaves
from hkbench.records import DeviceFacts, Floor

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


def least_time(reference: Reference, inputs: list[object], native: Leaves, facts: DeviceFacts) -> Floor | None:
    """Return the floor of one call whose inputs have been flushed from the caches; `None` where no peaks are known.

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
        counted = _counted(reference, inputs, native)
    finally:
        for name, value in reference.model.named_buffers():
            value.copy_(buffers[name])  # statistics that forward updates have seen what was planted
    parameters = _distinct(list(reference.model.parameters()))
    operations = counted.operations
    if operations is not None:
        needed += int(PARAMETER_SHARE * sum(_bytes(p.detach())[0] for p in parameters))
    needed += max(0, counted.written - facts.llc_bytes)
    given = _distinct([leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)])
    by_bytes = needed / facts.bandwidth
    # Any dtype's rate: float32 products can be put together from bfloat16 ones.
    rate = max(facts.peak_flops.values(), default=None)
    by_operations = operations / rate if operations is not None and rate else 0.0
    return Floor(
        seconds=max(by_bytes, by_operations),
        bytes=needed,
        operations=operations,
        bound="operations" if by_operations > by_bytes else "bytes",
        all_bytes=counted.written + sum(tensor.untyped_storage().nbytes() for tensor in [*given, *parameters]),
        all_operations=counted.all_operations,
        own_rate=None if operations is None else facts.peak_flops.get(counted.dtype) == rate,
    )


def _input_bytes(reference: Reference, inputs: list[object], native: Leaves) -> int:
    """Return the bytes of the inputs that matter. The inputs are left as they were.

    Copies for each of so many calls cost more than the calls. So the reference sees the inputs themselves, and what it
    says counts if they are still the same after the first call and after the last.
    """
    before = _Contents(inputs)

    def direct() -> Leaves:
        return reference.native(inputs, copies=False)

    try:
        if not _differ(direct(), native) and before.hold():
            read = _probed_bytes(direct, inputs, native)
            if before.hold():
                return read
    except ProblemError:
        pass  # what cannot work in place on these inputs: copies are another matter
    before.restore()
    del before  # its memory is wanted for the copies
    if _differ(reference.native(inputs), native):
        return 0  # the reference does not repeat itself (dropout, atomics): no probe would tell anything
    return _probed_bytes(lambda: reference.native(inputs), inputs, native)


class _Contents:
    """Copies of the memory below some inputs, byte by byte: views and tensors given twice stay what they are."""

    def __init__(self, inputs: list[object]) -> None:
        storages = [leaf.untyped_storage() for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)]
        self._places = list({s.data_ptr(): _words(s) for s in storages}.values())
        self._copies = [place.clone() for place in self._places]

    def hold(self) -> bool:
        """Return whether the inputs still are what they were."""
        pairs = zip(self._places, self._copies, strict=True)
        return all(torch.equal(*parts) for place, copied in pairs for parts in _parts(place, copied))

    def restore(self) -> None:
        for place, copied in zip(self._places, self._copies, strict=True):
            place.copy_(copied)


def _words(storage: torch.UntypedStorage) -> torch.Tensor:
    """Return the storage as whole numbers, as wide as its size allows."""
    data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return data.view(torch.int64) if storage.nbytes() % 8 == 0 else data


def _probed_bytes(call: Callable[[], Leaves], inputs: list[object], native: Leaves) -> int:
    generator = torch.Generator().manual_seed(0)
    total = 0
    for tensor in _distinct([leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)]):
        size, largest = _bytes(tensor)
        if size and _matters(tensor, largest, call, native, generator):
            total += size
    return total


def _distinct(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return one tensor for each storage, the smallest: views may overlap, and what is shared is read once."""
    chosen: dict[int, torch.Tensor] = {}
    for tensor in sorted(tensors, key=lambda t: -t.numel()):
        chosen[tensor.untyped_storage().data_ptr()] = tensor
    return list(chosen.values())


def _bytes(tensor: torch.Tensor) -> tuple[int, float]:
    """Return what has to be read of a tensor whose elements all matter, and their largest magnitude.

    0 bytes where it cannot be said.
    """
    for dim in range(tensor.dim()):
        if tensor.stride(dim) == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    domain = domains.inspect(tensor)
    if domain.fixed or domain.infinite or domain.ordered:
        return 0, 0.0
    size = tensor.numel() * tensor.element_size()
    if domain.zeros:
        size = int(size * (1.0 - domain.zero_share))
    return (size // 2 if domain.symmetric else size), domain.largest


def _matters(
    tensor: torch.Tensor, largest: float, call: Callable[[], Leaves], native: Leaves, gen: torch.Generator
) -> bool:
    """Return whether every one of `PROBES` elements that are not zero, drawn at random, changes an output.

    A large number of either sign is planted, not NaN: times zero, or beside a mask of -10000, NaN would come through
    although an honest kernel need not read the element.
    """
    large = min(30.0 * largest, 0.1 * torch.finfo(tensor.dtype).max)
    longest = max(range(tensor.dim()), key=tensor.size)
    probes = 0
    for _ in range(4 * PROBES):
        index = tuple(int(torch.randint(0, size, (), generator=gen)) for size in tensor.shape)
        near = index[longest] / tensor.size(longest)
        old = tensor[index].clone()
        if float(old) == 0.0:
            continue
        changed = False
        try:
            for value in (large, -large):
                tensor[index] = value
                changed = _differ(call(), native, near)
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


def _differ(made: Leaves, native: Leaves, near: float = 0.0) -> bool:
    """Return whether an element of an output is another one. `near` (0..1) is how far along the first look may pay."""
    for path, leaf in native.items():
        other = made.get(path)
        if not isinstance(leaf, torch.Tensor) or not isinstance(other, torch.Tensor) or leaf.shape != other.shape:
            return True
        parts = _parts(leaf, other)
        start = int(near * len(parts))
        if not all(_same(one, two) for one, two in parts[start:] + parts[:start]):
            return True
    return False


def _parts(left: torch.Tensor, right: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Split two tensors of one shape: that bounds temporary memory and ends at the first difference."""
    most = CHUNKS[left.device.type]
    return list(zip(domains.pieces(left, most), domains.pieces(right, most), strict=True))


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.dtype == right.dtype and torch.equal(left, right):
        return True
    return bool(((left == right) | ((left != left) & (right != right))).all())  # NaN for NaN is the same


class _Record(QuickDispatchMode):
    """Names of the operators called, and the operands and result of the dense ones."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.dense: list[tuple[tuple[Any, ...], torch.Tensor]] = []
        self.operations = 0  # of all products, convolutions and attention

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.names.append(name)
        if name in _DENSE and isinstance(result, torch.Tensor):
            self.dense.append((args, result))
        if (count := flop_registry.get(func.overloadpacket)) is not None:
            self.operations += int(count(*args, **(kwargs or {}), out_val=result))
        return result


@dataclass(frozen=True)
class _Counted:
    operations: int | None  #: of the one dense product that the reference is
    dtype: str  #: of its factors
    all_operations: int
    written: int  #: bytes of the outputs


def _counted(reference: Reference, inputs: list[object], native: Leaves) -> _Counted:
    copies = mapped(inputs, torch.clone)
    record = _Record()
    with torch.no_grad(), record:
        made = reference.model(*copies)
    given = [leaf for _, leaf in leaves(copies, "") if isinstance(leaf, torch.Tensor)]
    dtype = str(record.dense[0][1].dtype).removeprefix("torch.") if record.dense else ""
    written = _output_bytes(reference, given, made)
    return _Counted(_operations(reference, given, native, record), dtype, record.operations, written)


def _output_bytes(reference: Reference, given: list[torch.Tensor], made: object) -> int:
    """Return the bytes of outputs with memory of their own: those in an input or a parameter need no write."""
    held = {t.untyped_storage().data_ptr() for t in given}
    held |= {t.untyped_storage().data_ptr() for t in reference.model.state_dict().values()}
    total = 0
    for leaf in _distinct([leaf for _, leaf in leaves(made, "output") if isinstance(leaf, torch.Tensor)]):
        if leaf.untyped_storage().data_ptr() not in held:
            total += min(leaf.numel() * leaf.element_size(), leaf.untyped_storage().nbytes())
    return total


def _operations(reference: Reference, given: list[torch.Tensor], native: Leaves, record: _Record) -> int | None:
    """Return the operations of the one dense product that the reference is, or None if it is anything else."""
    outputs = [leaf for leaf in native.values() if isinstance(leaf, torch.Tensor)]
    if len(record.dense) != 1 or len(outputs) != 1 or not set(record.names) <= _DENSE | _HARMLESS:
        return None
    (args, result) = record.dense[0]
    if outputs[0].numel() != result.numel():
        return None
    storages = {t.untyped_storage().data_ptr(): t.numel() for t in [*given, *reference.model.parameters()]}
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
    return 2 * result.numel() * factors[0].size(-1)
