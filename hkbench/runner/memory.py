"""The runner's view of the judge's inbox and outbox: host memory (memfd) or device memory (IPC handle)."""

from __future__ import annotations

import mmap
from typing import Any

import torch

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


def map_host(fd: int, size: int) -> torch.Tensor:
    """The whole region as bytes, shared with the judge."""
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)


def open_device(handle: dict[str, Any]) -> torch.Tensor:
    """Opens the judge's device allocation as bytes, without a copy (the arguments of torch's own IPC)."""
    storage = torch.UntypedStorage._new_shared_cuda(
        handle["device"],
        bytes.fromhex(handle["handle"]),
        handle["size"],
        handle["offset"],
        bytes.fromhex(handle["ref_counter"]),
        handle["ref_counter_offset"],
        bytes.fromhex(handle["event"]),
        handle["event_sync"],
    )
    return torch.empty(0, dtype=torch.uint8, device=f"cuda:{handle['device']}").set_(storage)


def view(region: torch.Tensor, place: dict[str, Any]) -> torch.Tensor:
    """The tensor that lies at `place` ({"dtype", "shape", "strides", "offset", "span"}) of a region."""
    dtype = DTYPES[place["dtype"]]
    start = place["offset"]
    flat = region[start : start + place["span"] * dtype.itemsize].view(dtype)
    return flat.as_strided(place["shape"], place["strides"])
