"""An emulated GPU in this process: HIP's runtime, the names of c10::cuda and PyTorch's device `cuda`, all stand-ins.

Nothing here executes a kernel: launches go to the device's process (hkbench/emulator/device.py), which shares the
memory of the tensors. Operators of PyTorch run on the host, over the same memory.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import torch

from hkbench.protocol import messages
from hkbench.runner import absent_gpu

RUNTIME, FRAME = "libamdhip64.so", ("libtorch_hip.so", "libc10_hip.so")  #: of hkbench/toolchain/emulated.py
_MAP_FIXED_NOREPLACE = 0x100000
_READ_WRITE, _SHARED = 3, 1


class _Gpu(ctypes.Structure):
    """`hkbench_gpu` of native/device.h."""

    _fields_ = (
        ("arch", ctypes.c_int),
        ("compute_units", ctypes.c_int),
        ("memory", ctypes.c_uint64),
        ("lds", ctypes.c_uint64),
        ("name", ctypes.c_char * 256),
    )


class EmulatedGpu:
    """The device, entered for good: this process serves one candidate."""

    def __init__(self, told: messages.EmulatedGpu, link: int, heap: int) -> None:
        """Take over the socket `link` to the device's process and the file of its memory."""
        folder, gpu = Path(told.libraries), told.gpu
        self._places = {"inbox": told.inbox, "outbox": told.outbox}
        self._sizes: dict[str, int] = {}  # of those that are mapped
        self.runtime = ctypes.CDLL(str(folder / RUNTIME), mode=ctypes.RTLD_GLOBAL | os.RTLD_NOW)
        self.runtime.hipGetErrorString.restype = ctypes.c_char_p
        known = _Gpu(int(gpu.arch[3:]), gpu.compute_units, gpu.memory, gpu.lds, gpu.name.encode())
        base, size = ctypes.c_uint64(told.base), ctypes.c_uint64(told.size)
        failed = self.runtime.hkbench_attach(link, heap, base, size, ctypes.byref(known))
        if failed:
            raise OSError(failed, f"the memory of the emulated GPU cannot be mapped: {os.strerror(failed)}")
        for name in FRAME:
            frame = ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL | os.RTLD_NOW)
        frame.hkbench_begin()
        _answer(told, self._no_graph)
        _build_for_rocm(told.hip)
        if importlib.util.find_spec("triton") is not None:
            _tune_at_once()

    def error(self) -> str | None:
        """Return the last error of HIP's runtime, which is cleared."""
        code = int(self.runtime.hipGetLastError())
        return f"{self.runtime.hipGetErrorString(code).decode()} (error {code})" if code else None

    def _no_graph(self, *_: object, **__: object) -> NoReturn:
        """Refuse graphs: what is captured would have to be kept from running."""
        self.runtime.hkbench_refuse(b"torch.cuda.CUDAGraph")
        raise NotImplementedError("the emulated GPU has no graphs: launch the kernels")

    def region(self, name: str, descriptor: int, size: int) -> torch.Tensor:
        """Return the "inbox" or "outbox" as bytes: the evaluator's file, at the address that the device uses.

        It takes the place of the one before, which nobody uses any more.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        address, flags = self._places[name], _SHARED | _MAP_FIXED_NOREPLACE
        if before := self._sizes.get(name):
            libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(before))
        self._sizes[name] = size
        if libc.mmap(address, size, _READ_WRITE, flags, descriptor, 0) != address:
            raise OSError(ctypes.get_errno(), f"the {name} cannot be mapped")
        self.runtime.hkbench_region(ctypes.c_uint64(address), ctypes.c_uint64(size))
        storage = torch._C._construct_storage_from_data_pointer(address, absent_gpu.DEVICE, size)
        return torch.empty(0, dtype=torch.uint8, device=absent_gpu.DEVICE).set_(storage)


class _Event(absent_gpu._Stream):
    """Work is done when it is asked for, and no clock is read: every interval is one second."""

    def elapsed_time(self, _end: object) -> float:
        return 1e3


def _answer(told: messages.EmulatedGpu, no_graph: Callable[..., NoReturn]) -> None:
    """Have torch.cuda answer for the device."""
    absent_gpu.answer_questions(told.gpu)
    properties = torch.cuda.get_device_properties()
    answers = {
        "_lazy_init": lambda: None,
        "_is_compiled": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda _including=True: True,
        "Event": _Event,
        "CUDAGraph": no_graph,
        "graph": no_graph,
        "graph_pool_handle": no_graph,
        "mem_get_info": lambda _device=None: (properties.total_memory, properties.total_memory),
        "memory_allocated": lambda _device=None: 0,
        "max_memory_allocated": lambda _device=None: 0,
        "reset_peak_memory_stats": lambda _device=None: None,
        "manual_seed": lambda _seed: None,
        "manual_seed_all": lambda _seed: None,
    }
    vars(torch.cuda).update(answers)
    vars(torch.version).update(hip=told.hip, cuda=None)
    names = {
        "_cuda_getCurrentRawStream": lambda _device=0: 0,
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": lambda _device: None,
        "_cuda_synchronize": lambda: None,
    }
    for name, function in names.items():
        setattr(torch._C, name, function)


def _build_for_rocm(version: str) -> None:
    """Have torch's extension builder do what it does in a PyTorch for ROCm, whose folder the environment names."""
    builder = importlib.import_module("torch.utils.cpp_extension")
    root = os.environ.get("ROCM_HOME")
    numbers = tuple(int(part) for part in version.split(".")[:2])
    vars(builder).update(ROCM_HOME=root, HIP_HOME=root, IS_HIP_EXTENSION=root is not None, ROCM_VERSION=numbers)


def _tune_at_once() -> None:
    """Have Triton's autotuner call each configuration once. The rest of its driver for AMD works as it stands."""
    driver = importlib.import_module("triton.backends.amd.driver").HIPDriver

    def launched(kernel_call: Callable[[], object], quantiles: Sequence[float] = (0.5,), **_: object) -> list[float]:
        kernel_call()
        return [1.0 for _ in quantiles]

    driver.get_benchmarker = lambda _self: launched
    driver.get_empty_cache_for_benchmark = lambda _self: torch.empty(1, dtype=torch.int, device=absent_gpu.DEVICE)
