"""The memory that judge and runner share: regions that the judge allocates, lays out, poisons and reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch

from hkbench.runner import device_memory
from hkbench.runner.memory import POISON, dtype_name, map_host, span, view
from hkbench.sandbox.client import seal_memory

ALIGNMENT = 256  #: bytes; what device allocators give, and enough for any vector load
MAX_ADDRESS = 1 << 62
#: Memory is filled and compared so many bytes at a time: one by one, a GPU is kept by instructions, not by its memory.
_WORD = torch.int64
_POISONED = int.from_bytes(bytes([POISON]) * _WORD.itemsize, "little", signed=True)


@dataclass
class Layout:
    """Assigns places one after another. A place is what the wire carries: dtype, shape, strides, offset, span."""

    size: int = 0

    def place(self, tensor: torch.Tensor) -> dict[str, Any]:
        """A place for a tensor like this one; overlapping tensors (expanded ones) become contiguous."""
        strides, extent = _extent(tensor)
        place = {
            "dtype": dtype_name(tensor.dtype),
            "shape": list(tensor.shape),
            "strides": strides,
            "offset": self.size,
            "span": extent,
        }
        self.size += -(-extent * tensor.element_size() // ALIGNMENT) * ALIGNMENT
        return place

    def argument(self, value: object) -> dict[str, Any]:
        """An argument of `forward` or of the constructor, as the wire carries it."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self.place(value)}
        if isinstance(value, (list, tuple)):
            return {"list": [self.argument(item) for item in value], "tuple": isinstance(value, tuple)}
        if isinstance(value, dict):
            return {"dict": {str(key): self.argument(item) for key, item in value.items()}}
        return {"value": value}


def _extent(tensor: torch.Tensor) -> tuple[list[int], int]:
    """Strides and number of elements that the tensor's storage needs."""
    if tensor.numel() == 0:
        return list(tensor.contiguous().stride()), 0
    if overlaps(tensor.shape, tensor.stride()):
        return list(torch.empty(tensor.shape, device="meta").stride()), tensor.numel()
    return list(tensor.stride()), span(tensor.shape, tensor.stride())


def is_address(value: object) -> TypeGuard[int]:
    """Whether what a runner says can be an address: no device and no process has one beyond."""
    return type(value) is int and 0 <= value < MAX_ADDRESS


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an element of a larger dimension repeats memory (expanded tensors, sliding windows)."""
    if 0 in shape:
        return False
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


class Arena:
    """One region, on the host (sealed memory file) or on the device (shared by the descriptor that stands for it)."""

    def __init__(self, region: torch.Tensor, description: dict[str, Any], descriptor: int | None = None) -> None:
        self.region = region
        self.description = description
        self.descriptor = descriptor  #: open until `release`: two runners are given it

    @classmethod
    def on_host(cls, fd: int, size: int) -> Arena:
        size = max(size, ALIGNMENT)
        seal_memory(fd, size)
        return cls(map_host(fd, size), {"size": size})

    @classmethod
    def on_device(cls, size: int, device: torch.device) -> Arena:
        """Raises RuntimeError where processes cannot share the device's memory."""
        return cls(*device_memory.allocate(max(size, ALIGNMENT), device))

    def release(self) -> None:
        """Gives device memory back; nobody may look at the region afterwards. The host's goes with its file."""
        if self.descriptor is not None:
            device_memory.release(self.region)
            os.close(self.descriptor)
            self.descriptor = None

    def put(self, place: dict[str, Any], tensor: torch.Tensor) -> None:
        view(self.region, place).copy_(tensor)

    def get(self, place: dict[str, Any]) -> torch.Tensor:
        """The tensor at a place; it aliases the region."""
        return view(self.region, place)

    def poison(self, begin: int = 0) -> None:
        """Fills the region, from a place on that `Layout` gave out, so that whatever is not written reads as NaN."""
        self.region[begin:].view(_WORD).fill_(_POISONED)


def fill(arena: Arena, places: Any, value: object) -> None:
    """Writes the tensors of an argument to the places that `Layout.argument` gave it."""
    if "tensor" in places:
        assert isinstance(value, torch.Tensor)
        arena.put(places["tensor"], value)
    elif "list" in places:
        assert isinstance(value, (list, tuple))
        for place, item in zip(places["list"], value, strict=True):
            fill(arena, place, item)
    elif "dict" in places:
        assert isinstance(value, dict)
        for place, item in zip(places["dict"].values(), value.values(), strict=True):
            fill(arena, place, item)


def same(arena: Arena, places: Any, value: object) -> bool:
    """Whether the tensors at these places still hold `value`, bit for bit."""
    if "tensor" in places:
        assert isinstance(value, torch.Tensor)
        return _same_bits(arena.get(places["tensor"]), value)
    if "list" in places:
        assert isinstance(value, (list, tuple))
        return all(same(arena, place, item) for place, item in zip(places["list"], value, strict=True))
    if "dict" in places:
        assert isinstance(value, dict)
        pairs = zip(places["dict"].values(), value.values(), strict=True)
        return all(same(arena, place, item) for place, item in pairs)
    return True


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.device.type != right.device.type:
        right = right.to(left.device)
    if left.is_complex():
        left, right = torch.view_as_real(left), torch.view_as_real(right.resolve_conj())
    # Equality of values would call NaN a change; and -0.0 for 0.0 none.
    return torch.equal(*_as_numbers(left.contiguous(), right.contiguous()))


def _as_numbers(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bits of two contiguous tensors of one dtype as whole numbers, the widest that sizes and offsets allow."""
    size = left.element_size()
    ends = (left.nbytes, *(tensor.storage_offset() * size for tensor in (left, right)))
    if all(end % _WORD.itemsize == 0 for end in ends):
        return left.reshape(-1).view(_WORD), right.reshape(-1).view(_WORD)
    if not left.is_floating_point():
        return left, right
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    return left.view(kind), right.view(kind)
