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
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from hkbench.protocol import messages
from hkbench.runner import absent_gpu, absent_inductor
from hkbench.runner.emulated.types import TensorType, tensor_types

RUNTIME, FRAME = "libamdhip64.so", ("libtorch_hip.so", "libc10_hip.so")  #: of hkbench/toolchain/emulated.py
#: Names in torch.cuda that are refused when they are called: what is captured would have to be kept from running, and
#: there is no allocator with pools.
_ABSENT = (
    *("CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables"),
    *("MemPool", "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_snapshot"),
)
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
        self._answer(told)
        _build_for_rocm(told.hip)
        if importlib.util.find_spec("triton") is not None:
            _tune_at_once()

    def error(self) -> str | None:
        """Return the last error of HIP's runtime, which is cleared."""
        code = int(self.runtime.hipGetLastError())
        return f"{self.runtime.hipGetErrorString(code).decode()} (error {code})" if code else None

    def _refuse(self, name: str, *_: object, **__: object) -> NoReturn:
        self.runtime.hkbench_refuse(name.encode())
        raise NotImplementedError(f"the emulated GPU has no {name}: do without it")

    def _set_default_type(self, original: Callable[[Any], None], chosen: object) -> None:
        if isinstance(chosen, TensorType) or (isinstance(chosen, str) and chosen.startswith("torch.cuda.")):
            self._refuse("torch.set_default_tensor_type for torch.cuda")
        original(chosen)

    def _answer(self, told: messages.EmulatedGpu) -> None:
        """Have torch answer for the device."""
        absent_gpu.answer_questions(told.gpu)
        memory, in_use, peak = told.gpu.memory, self.runtime.hkbench_in_use, self.runtime.hkbench_peak
        in_use.restype = peak.restype = ctypes.c_uint64
        default = torch.Generator("cuda")
        default.graphsafe_set_state(torch.default_generator)  # operators that are given none use that one

        def begin_anew(_device: object = None) -> None:
            peak(1)

        answers = {
            "_lazy_init": lambda: None,
            "_is_compiled": lambda: True,
            "is_initialized": lambda: True,
            "is_bf16_supported": lambda _including=True: True,
            "Event": _Event,
            "mem_get_info": lambda _device=None: (memory - in_use(), memory),
            **dict.fromkeys(("memory_allocated", "memory_reserved"), lambda _device=None: in_use()),
            **dict.fromkeys(("max_memory_allocated", "max_memory_reserved"), lambda _device=None: peak(0)),
            **dict.fromkeys(("reset_peak_memory_stats", "reset_max_memory_allocated"), begin_anew),
            "_exchange_device": lambda _device: 0,
            "_maybe_exchange_device": lambda _device: 0,
            "default_generators": (default,),
            **tensor_types(),
        }
        vars(torch.cuda).update(answers)
        vars(torch.cuda).update({name: partial(self._refuse, f"torch.cuda.{name}") for name in _ABSENT})
        vars(torch)["set_default_tensor_type"] = partial(self._set_default_type, torch.set_default_tensor_type)
        vars(torch.version).update(hip=told.hip, cuda=None)
        vars(torch._C).update(absent_inductor.DRIVER)
        torch._C._dynamo.guards._empty_strided_cuda = _empty  # type: ignore[attr-defined]  # what torch.compile calls
        torch.UntypedStorage.clone = _cloned  # type: ignore[assignment]  # what copy.deepcopy calls

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


def _empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=absent_gpu.DEVICE)


def _cloned(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage).clone().untyped_storage()


class _Event(absent_gpu._Stream):
    """Work is done when it is asked for, and no clock is read: every interval is one second."""

    def elapsed_time(self, _end: object) -> float:
        return 1e3


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
