"""Device memory that two processes share by a file descriptor: the driver's virtual memory management.

The evaluator allocates and exports, a runner imports. A descriptor passed over a socket works where the older
inter-process handles do not: those of CUDA want one process namespace for both ends, those of ROCm a socket of the
exporter's that the importer can reach, and a confined runner has neither. CUDA's driver and HIP's runtime have the same
functions under two prefixes (CUDA driver API, "Virtual Memory Management"; HIP API, "Virtual memory management").
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p

import torch

from hkbench.protocol.runtimes import loaded_runtimes

_PINNED = 1  #: of enum *MemAllocationType
_DEVICE = 1  #: of enum *MemLocationType
_FILE_DESCRIPTOR = 1  #: of enum *MemAllocationHandleType
_READ_WRITE = 3  #: of enum *MemAccessFlags
_MINIMUM = 0  #: of enum *MemAllocationGranularity_flags
#: From this version of HIP on the descriptor itself is handed over to be imported, before it a pointer to it.
_HIP_BY_VALUE = (7, 1)


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _Flags(ctypes.Structure):
    _fields_ = (
        ("compression", c_ubyte), ("rdma_capable", c_ubyte), ("usage", c_ushort), ("reserved", c_ubyte * 4),
    )  # fmt: skip


class _Properties(ctypes.Structure):
    """CUmemAllocationProp, hipMemAllocationProp."""

    _fields_ = (
        ("type", c_int), ("handle_types", c_int), ("location", _Location), ("win32", c_void_p), ("flags", _Flags),
    )  # fmt: skip


class _Access(ctypes.Structure):
    """CUmemAccessDesc, hipMemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", c_int))


class Driver:
    """The functions of one driver, by their names without prefix. Every failure is a RuntimeError that names it."""

    def __init__(self, library: str, prefix: str, by_value: bool) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise RuntimeError(f"the driver's library cannot be loaded: {error}") from error
        self._prefix = prefix
        self._by_value = by_value  #: how a descriptor is handed over to be imported

    def call(self, name: str, *arguments: object) -> None:
        function = getattr(self._library, self._prefix + name, None)
        if function is None:
            raise RuntimeError(f"this driver has no {self._prefix}{name}")
        if code := int(function(*arguments)):
            raise RuntimeError(f"{self._prefix}{name} failed: {self._text(code)}")

    def _text(self, code: int) -> str:
        if self._prefix == "cu":
            text = c_char_p()
            self._library.cuGetErrorString(code, byref(text))
            return f"{(text.value or b'unknown error').decode(errors='replace')} (error {code})"
        self._library.hipGetErrorString.restype = c_char_p
        return f"{(self._library.hipGetErrorString(code) or b'unknown error').decode(errors='replace')} (error {code})"

    def allocate(self, size: int, device: int) -> tuple[int, int, int]:
        """Allocate at least `size` bytes; return the address here, the real size, and a descriptor for others.

        Raises:
            RuntimeError: the device, or its driver, cannot do so.
        """
        place = _Location(_DEVICE, device)
        properties = _Properties(_PINNED, _FILE_DESCRIPTOR, place)
        step = c_size_t()
        self.call("MemGetAllocationGranularity", byref(step), byref(properties), _MINIMUM)
        size = -(-size // step.value) * step.value
        handle, fd = c_uint64(), c_int(-1)
        self.call("MemCreate", byref(handle), c_size_t(size), byref(properties), c_uint64(0))
        self.call("MemExportToShareableHandle", byref(fd), handle, _FILE_DESCRIPTOR, c_uint64(0))
        return self._map(handle, size, place), size, fd.value

    def open(self, fd: int, size: int, device: int) -> int:
        """Map what another process allocated; `size` is the real one. The descriptor may be closed afterwards.

        Raises:
            RuntimeError: it cannot be imported here.
        """
        handle, number = c_uint64(), c_int(fd)
        given = c_void_p(fd) if self._by_value else ctypes.cast(byref(number), c_void_p)
        self.call("MemImportFromShareableHandle", byref(handle), given, _FILE_DESCRIPTOR)
        return self._map(handle, size, _Location(_DEVICE, device))

    def release(self, address: int, size: int) -> None:
        """Undo `allocate` in this process; the memory is free when no other one has it mapped.

        Raises:
            RuntimeError: the driver refuses, or do not know how.
        """
        self.call("MemUnmap", c_uint64(address), c_size_t(size))
        self.call("MemAddressFree", c_uint64(address), c_size_t(size))

    def _map(self, handle: c_uint64, size: int, place: _Location) -> int:
        """Return the address; the mapping keeps the memory, and it stays until `release` or the end of the process."""
        address = c_uint64()
        self.call("MemAddressReserve", byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
        self.call("MemMap", address, c_size_t(size), c_size_t(0), handle, c_uint64(0))
        self.call("MemSetAccess", address, c_size_t(size), byref(_Access(place, _READ_WRITE)), c_size_t(1))
        self.call("MemRelease", handle)
        return address.value


def driver() -> Driver:
    """Return the driver of the installed torch.

    Raises:
        RuntimeError: its library cannot be loaded.
    """
    if torch.version.hip is None:
        return Driver("libcuda.so.1", "cu", by_value=True)
    version = tuple(int(part) for part in torch.version.hip.split(".")[:2])
    library = next((path for kind, path in loaded_runtimes() if kind == "hip"), "libamdhip64.so")
    return Driver(library, "hip", by_value=version >= _HIP_BY_VALUE)


def allocate(size: int, device: torch.device) -> tuple[torch.Tensor, int]:
    """Return a region of at least `size` bytes on a device, and its descriptor, by which a runner opens it.

    Raises:
        RuntimeError: the device, or its driver, cannot share memory so.
    """
    number = _ready(device)
    address, real, fd = driver().allocate(size, number)
    return _bytes_at(address, real, device), fd


def release(region: torch.Tensor) -> None:
    """Give back what `allocate` made. Raises RuntimeError where the driver refuses."""
    torch.cuda.synchronize(region.device)
    driver().release(region.data_ptr(), region.nbytes)


def open_shared(size: int, fd: int, device: torch.device) -> torch.Tensor:
    """Return the region of so many bytes that `allocate` made in another process; closes the descriptor.

    `device` is what this process calls the one on which it lies.

    Raises:
        RuntimeError: it cannot be opened here.
    """
    try:
        address = driver().open(fd, size, _ready(device))
    finally:
        os.close(fd)
    return _bytes_at(address, size, device)


def _ready(device: torch.device) -> int:
    """Return the device's number, with a context made on it: the driver's calls do not make one."""
    torch.empty(1, device=device)
    return torch.cuda.current_device() if device.index is None else device.index


def _bytes_at(address: int, size: int, device: torch.device) -> torch.Tensor:
    storage = torch._C._construct_storage_from_data_pointer(address, device, size)
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
