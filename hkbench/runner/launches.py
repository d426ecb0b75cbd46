"""Triton's launches, compiled for a GPU that is not there and not run.

The driver here names an AMD GPU, keeps the code objects and launches nothing (see triton_driver.py).
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from hkbench.protocol.messages import AbsentGpu, Launched, Object
from hkbench.runner.absent_gpu import DEVICE, THREADS_OF_A_UNIT, AbsentGpuMode, answer_questions, is_on_gpu
from hkbench.runner.raised import raised
from hkbench.runner.triton_driver import MAX_THREADS, AbsentDriver, Loaded
from hkbench.runner.triton_sources import Function, innermost, kernels_of, line_of, uses

WAVE = 64
PART = 2 << 20  #: bytes of a code object in one answer
_OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
_VALUE_LIMIT = 100  #: characters of a constant's value
_MESSAGE_LIMIT = 16_000  #: characters of an error
_ARGUMENTS_BEGIN = 9  #: of a launcher's call, behind grid, stream, function, metadata and hooks


class _Source(Protocol):
    """What Triton compiles: a function with the types of its arguments and the values of some."""

    name: str
    fn: Function
    signature: Mapping[str, object]
    constants: Mapping[tuple[int, ...], object]


class _Metadata(Protocol):
    """What Triton says of a compiled kernel."""

    name: str
    shared: int


class _Kernel:
    """One specialisation of a kernel: Triton makes one launcher for each, and launches through it."""

    def __init__(self, recorder: Recorder, source: _Source, metadata: _Metadata) -> None:
        self.image = b""
        self.launches = 0
        signature = dict(source.signature)
        names = list(signature)
        declared = {parameter.name for parameter in source.fn.params if parameter.is_constexpr}
        constants = {names[key[0]]: value for key, value in source.constants.items() if len(key) == 1}
        self.name = metadata.name
        self.described: Object = {
            "name": metadata.name,
            "signature": {name: str(kind) for name, kind in signature.items()},
            "constants": {name: _shown(value) for name, value in constants.items() if name in declared},
            "specialised": {name: _shown(value) for name, value in constants.items() if name not in declared},
            "options": {name: getattr(metadata, name, None) for name in _OPTIONS},
            "lds_bytes": metadata.shared,
        }
        recorder.kernels.append(self)

    def __call__(self, *call: object) -> None:
        for number, value in enumerate(call[_ARGUMENTS_BEGIN:]):
            if isinstance(value, torch.Tensor) and not is_on_gpu(value):
                raise ValueError(f"Pointer argument (at {number}) cannot be accessed from Triton (cpu tensor?)")
        self.launches += 1


def _shown(value: object) -> str:
    return str(getattr(value, "value", value))[:_VALUE_LIMIT]


class Recorder(AbsentDriver):
    """Triton's driver. `kernels` grow with each that is compiled, `refused` with each that is not."""

    def __init__(self, gpu: AbsentGpu, say: Callable[[str], None]) -> None:
        super().__init__(("hip", gpu.arch, WAVE), functools.partial(_Kernel, self))
        self.kernels: list[_Kernel] = []
        self.refused: list[Object] = []
        self._gpu = gpu
        self._say = say

    def properties(self, _device: int) -> Object:
        """Return what Triton asks of a GPU before it loads a binary."""
        return {
            "arch": self._gpu.arch,
            "warpSize": WAVE,
            "max_shared_mem": self._gpu.lds,
            "multiprocessor_count": self._gpu.compute_units,
            "max_threads_per_sm": THREADS_OF_A_UNIT,
        }

    def load(self, _name: str, image: bytes, _shared: int, _device: int) -> Loaded:
        """Keep the image; stand in for what Triton loads: module, function, registers, spills, threads a workgroup."""
        self.kernels[-1].image = bytes(image)
        return object(), object(), 0, 0, MAX_THREADS

    def watched(self, compiler: Callable[..., object]) -> Callable[..., object]:
        """Wrap Triton's `compile`: the evaluator is told when it is at work and what it refuses."""

        @functools.wraps(compiler)
        def compiled(source: _Source, *args: object, **kwargs: object) -> object:
            self._say("build_begin")
            try:
                return compiler(source, *args, **kwargs)
            except Exception as error:
                cause = innermost(error)
                self.refused.append(
                    {
                        "name": str(source.name),
                        "error": type(cause).__name__,
                        "message": str(cause)[:_MESSAGE_LIMIT],
                        "line": line_of(source.fn, cause),
                    }
                )
                raise
            finally:
                self._say("build_end")

        return compiled


class Launches:
    """The candidate's import, construction and one forward pass, with Triton's launches recorded."""

    def __init__(self, gpu: AbsentGpu, say: Callable[[str], None]) -> None:
        """Watch from here to the end of the process. Raises ImportError without Triton or its AMD back end."""
        triton = importlib.import_module("triton")
        importlib.import_module("triton.backends.amd.compiler")
        compiler = vars(importlib.import_module("triton.compiler"))
        self._recorder = Recorder(gpu, say)
        compiler["compile"] = self._recorder.watched(compiler["compile"])
        triton.runtime.driver.set_active(self._recorder)
        answer_questions(gpu)
        self._view = contextlib.ExitStack()
        self._view.enter_context(AbsentGpuMode())

    def forward(
        self,
        model_class: Callable[..., torch.nn.Module],
        init_inputs: Sequence[object],
        inputs: Sequence[object],
        seed: int,
    ) -> Launched:
        """Return what became of each launch, and the exception that ended the rest, with the stage it came from."""
        stage, ended = "load", None
        try:
            torch.manual_seed(seed)
            model = model_class(*init_inputs).to(DEVICE)
            stage = "run"
            with torch.no_grad():
                model(*inputs)
        except Exception as error:  # noqa: BLE001 - the candidate may raise anything, and what was compiled counts
            ended = raised(error)
        described = [
            kernel.described | {"launches": kernel.launches, "bytes": len(kernel.image)}
            for kernel in self._recorder.kernels
        ]
        refused, idle = self._recorder.refused, self._idle()
        return Launched(stage=stage, raised=ended, kernels=described, refused=refused, idle=idle)

    def _idle(self) -> list[str]:
        """Return the names of the candidate's kernels that were neither launched nor used by another one."""
        found = kernels_of(vars(sys.modules["candidate"]))
        compiled: set[object] = {kernel.name for kernel in self._recorder.kernels}
        compiled |= {refused["name"] for refused in self._recorder.refused}
        return [
            name
            for name, function in found.items()
            if function.__name__ not in compiled
            and not any(uses(other, name) for key, other in found.items() if key != name)
        ]

    def part(self, number: int, offset: int) -> str:
        """Return a part of a code object, in base64."""
        return base64.b64encode(self._recorder.kernels[number].image[offset : offset + PART]).decode()
