"""The runner's view of the evaluator's inbox and outbox: host memory (memfd) or device memory (device_memory.py)."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import overload

import torch

from hkbench.protocol.places import Place
from hkbench.protocol.runtimes import loaded_runtimes

#: Names used on the wire. A dtype that is not listed cannot cross (complex and quantised types of rare problems can).
DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16,
        torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.complex128,
    )
}  # fmt: skip


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def resident_bytes() -> int:
    """Return this process's resident bytes in the host's memory."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - also where nothing else of /proc can be seen
        return int(file.read().split()[1]) * mmap.PAGESIZE


def map_host(fd: int, size: int) -> torch.Tensor:
    """Return the whole region as bytes, shared with the evaluator."""
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)


def view(region: torch.Tensor, place: Place) -> torch.Tensor:
    """Return the tensor that lies at a place of a region."""
    dtype = DTYPES[place.dtype]
    flat = region[place.offset : place.offset + place.span * dtype.itemsize].view(dtype)
    return flat.as_strided(place.shape, place.strides)


_M_PERTURB = -6  #: of mallopt(3)
_JUNK = 0x01  #: freed memory gets this byte, handed-out memory its complement 0xFE: as a float a huge number
POISON = 0xFF  #: as a byte; as a float of any width it is a NaN
_MAX_POISON = 1 << 30  #: bytes; beyond, a block of the output's size may not fit a second time
_DEFAULT_POOL = (0, 0)  #: of torch's allocator
_libc = ctypes.CDLL(None)


def perturb_heap(on: bool) -> None:
    """Make malloc fill what it hands out and takes back (glibc on the host; elsewhere nothing happens)."""
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_PERTURB, _JUNK if on else 0)


def poison_free(outputs: Iterable[torch.Tensor], device: torch.device, pool: tuple[int, int] = _DEFAULT_POOL) -> None:
    """Fill the free block that an output of the next call will most likely get, so that it holds no old answer.

    On a GPU all free blocks of torch's cache are filled, and those of the `pool` that calls allocate from.
    """
    blocks = [torch.empty_like(output, device=device) for output in outputs if output.nbytes <= _MAX_POISON]
    if device.type == "cuda":
        blocks.clear()  # they are free blocks now
        for address, size in _free_blocks(device, {_DEFAULT_POOL, pool}):
            _poison_device(address, size)
    for block in blocks:
        ctypes.memset(block.data_ptr(), POISON, block.untyped_storage().nbytes())


def _free_blocks(device: torch.device, pools: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Return (address, bytes) of the blocks that torch's allocator keeps for reuse.

    They are not asked for by allocating: a piece that is left over of a large block is given to nobody who asks for a
    small one, so that each call would take more memory. Other pools, of CUDA graphs, are left alone: who replays a
    graph may rely on what lies in its pool.
    """
    for segment in torch.cuda.memory_snapshot():
        if segment["device"] != (device.index or 0):
            continue
        if tuple(segment.get("segment_pool_id", _DEFAULT_POOL)) not in pools:
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                yield address, block["size"]
            address += block["size"]


def _memset() -> Callable[[int, int, int], int] | None:
    """Return cudaMemset or hipMemset of the runtime that torch has loaded; None where there is none.

    Only resolved here: a fork server must not touch the runtime.
    """
    for kind, path in loaded_runtimes():
        function = getattr(ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW), f"{kind}Memset")
        function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
        found: Callable[[int, int, int], int] = function
        return found
    return None


_device_memset = _memset()


def _poison_device(address: int, size: int) -> None:
    assert _device_memset is not None, "a device without its runtime"
    status = _device_memset(address, POISON, size)
    if status:
        raise RuntimeError(f"filling free device memory failed (error {status})")


def copy_out(place: torch.Tensor, leaf: torch.Tensor) -> None:
    """Copy a result to its place. Equal layouts on the host go by memmove, so that it is nobody's kernel."""
    same = leaf.device.type == "cpu" and leaf.layout == torch.strided and leaf.stride() == place.stride()
    if same and place.is_contiguous() and type(leaf) is torch.Tensor and not leaf.is_conj() and not leaf.is_neg():
        ctypes.memmove(place.data_ptr(), leaf.data_ptr(), place.nbytes)
    else:
        place.copy_(leaf)


def overlap(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether two tensors lie in the same stretch of memory (from the first to the last element of each)."""
    if left.device != right.device or left.layout != torch.strided or not left.numel() or not right.numel():
        return False
    (a, b), (c, d) = stretch(left), stretch(right)
    return a < d and c < b


def stretch(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the addresses of a strided tensor's first byte and of the one behind its last; it has elements."""
    start = tensor.data_ptr()
    return start, start + span(tensor.shape, tensor.stride()) * tensor.element_size()


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the number of elements from the first to the last one in memory; 0 for an empty tensor."""
    return 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same strides in memory of its own, also where elements share a place."""
    if not tensor.numel():
        return tensor.clone()
    flat = tensor.as_strided((span(tensor.shape, tensor.stride()),), (1,)).clone()
    return flat.as_strided(tensor.shape, tensor.stride())


@overload
def mapped(value: list[object], change: Callable[[torch.Tensor], torch.Tensor]) -> list[object]: ...
@overload
def mapped(value: object, change: Callable[[torch.Tensor], torch.Tensor]) -> object: ...
def mapped(value: object, change: Callable[[torch.Tensor], torch.Tensor]) -> object:
    """Return the same nested structure with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def first_names(state: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Return the first name of each entry's tensor: a tensor that is held under several names has one of them."""
    found: dict[tuple[object, ...], str] = {}
    names = {}
    for name, value in state.items():
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel() and value.data_ptr():
            key = (value.device, value.data_ptr(), tuple(value.shape), value.stride(), value.dtype)
            names[name] = found.setdefault(key, name)
        else:
            names[name] = name
    return names
