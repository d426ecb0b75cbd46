"""`torch.cuda.FloatTensor` and its like, by which older code makes tensors: a CPU build only names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_NAMES = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")


class TensorType(type):
    """A type of tensors on the device. It makes plain tensors, which are its instances as far as `isinstance` sees."""

    on_host: Callable[..., torch.Tensor]  #: the CPU's type
    dtype: torch.dtype
    is_cuda = True

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor) and instance.is_cuda and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, device: torch.device | str = "cuda") -> torch.Tensor:
        """Return a tensor of the sizes that are given, or with the values of a sequence or a tensor of this type."""
        sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
        if all(isinstance(size, int) for size in sizes):
            return torch.empty(sizes or (0,), dtype=cls.dtype, device=device)
        if len(args) == 1 and isinstance(args[0], cls):
            return args[0].view_as(args[0])
        return cls.on_host(*args).to(device)


def tensor_types() -> dict[str, TensorType]:
    """Return the types by their names in `torch.cuda`."""
    made = {}
    for name in (f"{one}Tensor" for one in _NAMES):
        host = getattr(torch, name)
        # `Tensor.type` takes a class by this name, the dots included.
        made[name] = TensorType(f"torch.cuda.{name}", (), {"on_host": staticmethod(host), "dtype": host.dtype})
    return made
