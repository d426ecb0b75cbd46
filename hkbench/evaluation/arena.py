"""The memory that evaluator and runner share: regions that the evaluator allocates, lays out, poisons and reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import torch

from hkbench.protocol import device_memory
from hkbench.protocol.memory import POISON, dtype_name, map_host, span, view
from hkbench.protocol.places import (
    Argument,
    DictArgument,
    ListArgument,
    Place,
    PlainArgument,
    TensorArgument,
    places_in,
)
from hkbench.protocol.wire import leaves
from hkbench.sandbox.client import seal_memory

ALIGNMENT = 256  #: bytes; what device allocators give, and enough for any vector load
MAX_ADDRESS = 1 << 62
#: Memory is filled and compared so many bytes at a time: one by one, a GPU is kept by instructions, not by its memory.
_WORD = torch.int64
_POISONED = int.from_bytes(bytes([POISON]) * _WORD.itemsize, "little", signed=True)


@dataclass
class Layout:
    """Assign places one after another."""

    size: int = 0

    def place(self, tensor: torch.Tensor) -> Place:
        """Return a place for a tensor like this one; overlapping tensors (expanded ones) become contiguous."""
        strides, extent = _extent(tensor)
        dtype, shape = dtype_name(tensor.dtype), list(tensor.shape)
        place = Place(dtype=dtype, shape=shape, strides=strides, offset=self.size, span=extent)
        self.size += -(-extent * tensor.element_size() // ALIGNMENT) * ALIGNMENT
        return place

    def argument(self, value: object) -> Argument:
        """Return an argument of `forward` or of the constructor, with places for its tensors."""
        if isinstance(value, torch.Tensor):
            return TensorArgument(tensor=self.place(value))
        if isinstance(value, (list, tuple)):
            return ListArgument(list_=[self.argument(item) for item in value], tuple_=isinstance(value, tuple))
        if isinstance(value, dict):
            return DictArgument(dict_={str(key): self.argument(item) for key, item in value.items()})
        return PlainArgument(value=value)


def _extent(tensor: torch.Tensor) -> tuple[list[int], int]:
    """Return the strides and the number of elements that the tensor's storage needs."""
    if tensor.numel() == 0:
        return list(tensor.contiguous().stride()), 0
    if overlaps(tensor.shape, tensor.stride()):
        return list(torch.empty(tensor.shape, device="meta").stride()), tensor.numel()
    return list(tensor.stride()), span(tensor.shape, tensor.stride())


def is_address(value: object) -> TypeGuard[int]:
    """Return whether what a runner says can be an address: no device and no process has one beyond."""
    return type(value) is int and 0 <= value < MAX_ADDRESS


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether an element of a larger dimension repeats memory (expanded tensors, sliding windows)."""
    if 0 in shape:
        return False
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


class SharedBuffer:
    """One region, on the host (sealed memory file) or on the device (shared by the descriptor that stands for it)."""

    def __init__(self, region: torch.Tensor, descriptor: int | None = None) -> None:
        self.region = region
        self.descriptor = descriptor  #: open until `release`: two runners are given it

    @classmethod
    def on_host(cls, fd: int, size: int) -> SharedBuffer:
        size = max(size, ALIGNMENT)
        seal_memory(fd, size)
        return cls(map_host(fd, size))

    @classmethod
    def on_device(cls, size: int, device: torch.device) -> SharedBuffer:
        """Raise RuntimeError where processes cannot share the device's memory."""
        return cls(*device_memory.allocate(max(size, ALIGNMENT), device))

    def release(self) -> None:
        """Give device memory back; the region must not be read afterwards. The host's memory goes with its file."""
        if self.descriptor is not None:
            device_memory.release(self.region)
            os.close(self.descriptor)
            self.descriptor = None

    def put(self, place: Place, tensor: torch.Tensor) -> None:
        view(self.region, place).copy_(tensor)

    def get(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place; it aliases the region."""
        return view(self.region, place)

    def poison(self, begin: int = 0) -> None:
        """Fill the region, from a place on that `Layout` gave out, so that whatever is not written reads as NaN."""
        self.region[begin:].view(_WORD).fill_(_POISONED)


def fill(arena: SharedBuffer, places: Argument, value: object) -> None:
    """Write the tensors of an argument to the places that `Layout.argument` gave it."""
    for place, tensor in _placed(places, value):
        arena.put(place, tensor)


def same(arena: SharedBuffer, places: Argument, value: object) -> bool:
    """Return whether the tensors at these places still hold `value`, bit for bit."""
    return all(_same_bits(arena.get(place), tensor) for place, tensor in _placed(places, value))


def _placed(places: Argument, value: object) -> Iterator[tuple[Place, torch.Tensor]]:
    """Yield the tensors of an argument with their places."""
    tensors = (leaf for _, leaf in leaves(value, "") if isinstance(leaf, torch.Tensor))
    return zip(places_in(places), tensors, strict=True)


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.device.type != right.device.type:
        right = right.to(left.device)
    if left.is_complex():
        left, right = torch.view_as_real(left), torch.view_as_real(right.resolve_conj())
    # Equality of values would call NaN a change; and -0.0 for 0.0 none.
    return torch.equal(*_as_numbers(left.contiguous(), right.contiguous()))


def _as_numbers(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """View the bits of two contiguous tensors of one dtype as the widest integers that sizes and offsets allow."""
    size = left.element_size()
    ends = (left.nbytes, *(tensor.storage_offset() * size for tensor in (left, right)))
    if all(end % _WORD.itemsize == 0 for end in ends):
        return left.reshape(-1).view(_WORD), right.reshape(-1).view(_WORD)
    if not left.is_floating_point():
        return left, right
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    return left.view(kind), right.view(kind)
