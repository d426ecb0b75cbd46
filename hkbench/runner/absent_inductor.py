"""torch.compile for a GPU that is not there: everything is compiled and put into its caches, and nothing is loaded.

What it needs of a GPU beside the answers of absent_gpu.py is answered here, as far as PyTorch 2.11 and 2.13 ask. A
question that is not answered ends the rehearsal, and the first call compiles as it would have without one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType

import torch
from torch._compile import _disable_dynamo

_CUDA = 1  #: PyTorch's number for its kind of device


@_disable_dynamo
def _stream(device: int) -> torch.Stream:
    """Return the GPU's stream. torch.compile asks for it also while it calls this, and would not come to an end."""
    return torch.Stream(stream_id=0, device_index=device, device_type=_CUDA)


#: By the names in torch._C.
DRIVER: dict[str, Callable[..., object]] = {
    "_cuda_getDevice": lambda: 0,
    "_cuda_getDeviceCount": lambda: 1,
    "_cuda_setDevice": lambda _device: None,
    "_cuda_exchangeDevice": lambda _device: 0,
    "_cuda_maybeExchangeDevice": lambda _device: 0,
    "_accelerator_getDeviceIndex": lambda: 0,
    "_accelerator_setDeviceIndex": lambda _device: None,
    "_accelerator_exchangeDevice": lambda _device: 0,
    "_accelerator_maybeExchangeDevice": lambda _device: 0,
    "_accelerator_getStream": _stream,
    "_cuda_getCurrentRawStream": lambda _device: 0,
    "_cuda_synchronize": lambda: None,
    "_cuda_isCurrentStreamCapturing": lambda: False,
}


def fake_tensors() -> AbstractContextManager[object]:
    """Return the mode in which all tensors are fake."""
    fake_tensor = importlib.import_module("torch._subclasses.fake_tensor")
    vars(fake_tensor)["init_gpu_context"] = lambda *_: None
    fake_tensor.FakeTensor.contiguous = _contiguous
    mode: AbstractContextManager[object] = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    return mode


def _contiguous(tensor: torch.Tensor, memory_format: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    """Do what `Tensor.contiguous` does, which chooses the GPU before PyTorch sees that the tensor is a fake one."""
    if tensor.is_contiguous(memory_format=memory_format):
        return tensor
    return tensor.clone(memory_format=memory_format)


def answer_questions() -> None:
    """Answer for the GPU; for good."""
    vars(torch._C).update(DRIVER)
    vars(torch.cuda).update(
        get_rng_state=lambda _device=None: torch.zeros(16, dtype=torch.uint8),
        set_rng_state=lambda _state, _device=None: None,
    )
    tuner = importlib.import_module("torch._inductor.runtime.triton_heuristics").CachingAutotuner
    for name in ("_make_launchers", "_dynamic_scale_rblock"):  # binaries are kept; to load them takes the GPU
        setattr(tuner, name, lambda _self: None)
    vars(importlib.import_module("torch._inductor.fx_passes.fuse_attention"))["torch"] = _Torch("torch")


class _Torch(ModuleType):
    """PyTorch, but that `tensor` makes a fake scalar: its own copies the number to the GPU also where all are fake."""

    def __getattr__(self, name: str) -> object:
        return getattr(torch, name)

    @staticmethod
    def tensor(data: float, *, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.full((), data, device=device, dtype=dtype)
