"""A driver for Triton of a GPU that is not there: kernels are compiled for it, and nothing is launched.

Triton asks a driver what it compiles for, loads code objects through it and launches by it. Specialisation, autotuner,
compiler and cache are Triton's own. It uses what Triton 3.6 and 3.9 have in common.
"""

from __future__ import annotations

import contextlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace

import torch

from hkbench.protocol.messages import Object
from hkbench.runner.absent_gpu import DEVICE
from hkbench.runner.autotuned import Forks

MAX_THREADS = 1024  #: of a workgroup

#: What of Triton's own driver it compiles in C when a kernel is first used: what speaks to the GPU, what launches.
_COMPILED_IN_C = {
    "cuda": ("triton.backends.nvidia.driver", "CudaUtils", "CudaLauncher"),
    "hip": ("triton.backends.amd.driver", "HIPUtils", "HIPLauncher"),
}

Loaded = tuple[object, object, int, int, int]  #: module, function, registers, spills, threads a workgroup


class AbsentDriver(ABC):
    """What Triton asks of a driver, by Triton's names."""

    def __init__(self, target: tuple[str, str | int, int], launcher: Callable[..., Callable[..., None]]) -> None:
        """Compile for `target` (back end, architecture, lanes); `launcher` makes what is called for a launch."""
        self._target = target
        self.launcher_cls = launcher
        self.utils = SimpleNamespace(
            get_device_properties=self.properties, load_binary=self.load, unload_module=lambda _module: None
        )

    @abstractmethod
    def properties(self, _device: int) -> Object:
        """Return what Triton asks of a GPU before it loads a binary."""

    @abstractmethod
    def load(self, _name: str, image: bytes, _shared: int, _device: int) -> Loaded:
        """Stand in for what Triton loads."""

    def get_current_target(self) -> object:
        return importlib.import_module("triton.backends.compiler").GPUTarget(*self._target)

    def get_current_device(self) -> int:
        return int(DEVICE.index)

    def set_current_device(self, _device: int) -> None:
        return

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_device_capability(self, *_device: int) -> tuple[int, int]:
        return torch.cuda.get_device_capability()

    def get_active_torch_device(self) -> torch.device:
        return DEVICE

    def get_device_interface(self) -> ModuleType:
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return the autotuner's clock: each configuration is launched once, so compiled, and all are equally fast."""

        def launched(
            kernel_call: Callable[[], object], quantiles: Sequence[float] = (0.5,), **_: object
        ) -> list[float]:
            kernel_call()
            return [1.0 for _ in quantiles]

        return launched


class IdleDriver(AbsentDriver):
    """The driver of a GPU with these properties, as torch.cuda names them, for which binaries are compiled and kept."""

    def __init__(self, gpu: SimpleNamespace, forks: Forks) -> None:
        """`forks` compile what the autotuner tries."""
        if torch.version.hip is None:
            target: tuple[str, str | int, int] = ("cuda", gpu.major * 10 + gpu.minor, gpu.warp_size)
        else:
            target = ("hip", gpu.gcnArchName.split(":")[0], gpu.warp_size)
        super().__init__(target, self._launcher)
        self._gpu, self._forks = gpu, forks
        self._compiled_in_c = _COMPILED_IN_C[target[0]]

    def properties(self, _device: int) -> Object:
        """Return such that no configuration is refused: the GPU itself will say which it takes."""
        return {
            "max_shared_mem": 1 << 30,
            "multiprocessor_count": self._gpu.multi_processor_count,
            "warpSize": self._gpu.warp_size,
            "max_threads_per_sm": self._gpu.max_threads_per_multi_processor,
        }

    def _launcher(self, source: object, metadata: object) -> Callable[..., None]:
        """Have Triton's own driver compile what it will launch the kernel by: 1.4 s in which the GPU would wait."""
        module, utils, launcher = self._compiled_in_c
        own = importlib.import_module(module)
        with contextlib.suppress(Exception):  # as without a rehearsal, it is then compiled when the GPU is there
            getattr(own, utils)()
            getattr(own, launcher)(source, metadata)
        return self._forks.launched

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return self._forks.benchmark

    def load(self, _name: str, _image: bytes, _shared: int, _device: int) -> Loaded:
        return object(), object(), 0, 0, MAX_THREADS
