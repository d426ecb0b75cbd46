"""A GPU that is not there: tensors without contents that say they lie on it, and the questions that torch.cuda answers.

A candidate is called at the problem's full size in a process without the GPU. Its tensors are on PyTorch's meta device,
which has shapes, strides and dtypes and no memory; here they look to the candidate as on `cuda:0`. What needs contents
(`.item()`, `.cpu()`, a branch on a value) raises, and so does every call of torch.cuda that is not answered here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TypeGuard

import torch
from torch.overrides import TorchFunctionMode

from hkbench.protocol import messages

DEVICE = torch.device("cuda", 0)
STORAGE_ALIGNMENT = 512  #: bytes; of PyTorch's allocator on a GPU
THREADS_OF_A_UNIT = 2048  #: 4 SIMDs of 8 waves of 64
_NAME = re.compile(r"cuda(:\d+)?")

# The same descriptor gives a new, equal getter each time.
_DEVICE, _IS_CUDA = torch.Tensor.device.__get__, torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]
_IS_META = torch.Tensor.is_meta.__get__  # type: ignore[attr-defined]


def is_on_gpu(value: object) -> TypeGuard[torch.Tensor]:
    """Return whether a value is a tensor of this GPU, asked from outside of the candidate's view."""
    with torch._C.DisableTorchFunction():
        return isinstance(value, torch.Tensor) and value.device.type == "meta"


def _address(tensor: torch.Tensor) -> int:
    """Return an address with the alignment that the tensor would have: its offset in an allocator's storage."""
    return STORAGE_ALIGNMENT + int(tensor.storage_offset()) * tensor.element_size()


#: What a tensor of the GPU answers in place of what a meta tensor would.
_ANSWERS: dict[object, Callable[[torch.Tensor], object]] = {
    _DEVICE: lambda _: DEVICE,
    _IS_CUDA: lambda _: True,
    _IS_META: lambda _: False,
    torch.Tensor.get_device: lambda _: DEVICE.index,
    torch.Tensor.data_ptr: _address,
}


class AbsentGpuMode(TorchFunctionMode):
    """While it is entered, whatever is asked for on `cuda` is a tensor without contents."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        _types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        first = args[0] if args else None
        if func in _ANSWERS and is_on_gpu(first):
            return _ANSWERS[func](first)
        if func is torch.Tensor.cuda and isinstance(first, torch.Tensor):
            return first.to("meta")
        own = _own_function(func)
        if own is not None:
            with self:
                return own(*args, **given)
        if "device" in given:
            given["device"] = _placed(given["device"], index=True)
        return func(*(_placed(value) for value in args), **given)


def _placed(value: object, *, index: bool = False) -> object:
    """Return a device argument as PyTorch gets it: the meta device for a GPU, anything else as it is."""
    named = isinstance(value, str) and _NAME.fullmatch(value)
    if named or (index and isinstance(value, int)) or (isinstance(value, torch.device) and value.type == "cuda"):
        return torch.device("meta")
    return value


def _own_function(func: object) -> Callable[..., object] | None:
    """Return what a custom operator runs on a GPU.

    On the meta device PyTorch would take its fake, which launches nothing.
    """
    if isinstance(func, torch._ops.OpOverloadPacket):
        func = getattr(func, "default", None)
    if not isinstance(func, torch._ops.OpOverload) or func.namespace in ("aten", "prims", "prim"):
        return None
    definition = torch._library.custom_ops.OPDEFS.get(func._schema.name)
    if definition is None:
        return None
    own: Callable[..., object] = definition._backend_fns.get(DEVICE.type, definition._init_fn)
    return own


class _Stream:
    """A stream or an event. Nothing runs, so there is nothing to wait for."""

    cuda_stream = stream_id = device_index = priority = 0
    device = DEVICE

    def __init__(self, *_: object, **__: object) -> None:
        return

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return

    def record_event(self, event: _Stream | None = None) -> _Stream:
        return event or self

    def wait_stream(self, _stream: object) -> None:
        return

    wait_event = wait_stream

    def wait(self, _stream: object = None) -> None:
        return

    record = wait

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -1

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _Graph:
    """A graph. What is captured is called, so that its kernels are seen; there is nothing to replay."""

    def __init__(self, *_: object, **__: object) -> None:
        return

    def capture_begin(self, *_: object, **__: object) -> None:
        return

    def capture_end(self) -> None:
        return

    replay = reset = capture_end

    def pool(self) -> tuple[int, int]:
        return 0, 0


class _Within:
    """Stand in for torch.cuda.device, torch.cuda.stream and torch.cuda.graph, of which there is one each."""

    idx = DEVICE.index

    def __init__(self, *_: object, **__: object) -> None:
        return

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


def answer_questions(gpu: messages.AbsentGpu) -> None:
    """Have torch.cuda answer for the GPU; for good, as this process serves one candidate."""
    properties = SimpleNamespace(
        name=gpu.name,
        gcnArchName=gpu.arch,
        multi_processor_count=gpu.compute_units,
        total_memory=gpu.memory,
        shared_memory_per_block=gpu.lds,
        max_threads_per_multi_processor=THREADS_OF_A_UNIT,
        warp_size=64,
        major=int(gpu.arch[3]),
        minor=int(gpu.arch[4]),
    )
    answer_by(lambda: properties)
    vars(torch.version).update(hip="absent", cuda=None)
    torch.Tensor.record_stream = lambda *_: None  # type: ignore[method-assign]


def answer_by(properties: Callable[[], SimpleNamespace]) -> None:
    """Have torch.cuda answer for a GPU with these properties, which are asked for when somebody wants them."""

    def capability(_device: object = None) -> tuple[int, int]:
        return properties().major, properties().minor

    answers: dict[str, object] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: DEVICE.index,
        "set_device": lambda _device: None,
        "device": _Within,
        "device_of": _Within,
        "stream": _Within,
        "set_stream": lambda _stream: None,
        "Stream": _Stream,
        "Event": _Stream,
        "CUDAGraph": _Graph,
        "graph": _Within,
        "graph_pool_handle": lambda: (0, 0),
        "get_device_properties": lambda _device=None: properties(),
        "get_device_name": lambda _device=None: properties().name,
        "get_device_capability": capability,
        "synchronize": lambda _device=None: None,
        "current_stream": _Stream,
        "default_stream": _Stream,
        "ExternalStream": _Stream,
        "is_current_stream_capturing": lambda: False,
        "empty_cache": lambda: None,
    }
    vars(torch.cuda).update(answers)
