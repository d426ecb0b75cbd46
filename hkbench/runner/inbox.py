"""What the evaluator gives a model: constructor arguments, parameters and inputs, which lie in the inbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from hkbench.protocol import memory
from hkbench.protocol.places import Argument, DictArgument, ListArgument, Place, TensorArgument

#: Of torch.nn.init: those that draw.
_DRAWING = (
    "uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
    "orthogonal_", "sparse_",
)  # fmt: skip


class Inbox:
    """The region, and the device on which its tensors are wanted. Where there is no region they are zeros."""

    def __init__(self, device: torch.device, region: torch.Tensor | None = None) -> None:
        self._device = device
        self._region = region
        self._staged: list[tuple[torch.Tensor, torch.Tensor]] = []  # (inbox, device) pairs, of a region on the host

    def view(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place; it aliases the region."""
        assert self._region is not None, "a tensor is asked for before the regions are mapped"
        return memory.view(self._region, place)

    def arguments(self, items: Sequence[Argument]) -> list[object]:
        """Return arguments whose tensors have memory of their own."""
        return [self._argument(item, stage=False) for item in items]

    def bind(self, items: Sequence[Argument]) -> list[object]:
        """Return inputs that are what lies in the region now, and after each `fetch` what lies there then."""
        self._staged = []
        return [self._argument(item, stage=True) for item in items]

    def fetch(self) -> None:
        """Take inputs that come by the host to the device."""
        for source, tensor in self._staged:
            tensor.copy_(source)

    def put_back(self) -> None:
        """Write inputs that came by the host back, so that the evaluator sees a change of them."""
        for source, tensor in self._staged:
            source.copy_(tensor)

    def _argument(self, item: Argument, stage: bool) -> object:
        match item:
            case ListArgument():
                values = [self._argument(part, stage) for part in item.list_]
                return tuple(values) if item.tuple_ else values
            case DictArgument():
                return {key: self._argument(part, stage) for key, part in item.dict_.items()}
            case TensorArgument():
                return self._tensor(item.tensor, stage)
        return item.value

    def _tensor(self, place: Place, stage: bool) -> torch.Tensor:
        dtype = memory.DTYPES[place.dtype]
        if self._region is None:
            return torch.empty_strided(place.shape, place.strides, dtype=dtype, device=self._device).zero_()
        source = self.view(place)
        if source.device.type == self._device.type:
            return source if stage else source.clone()
        target = torch.empty_strided(place.shape, place.strides, dtype=dtype, device=self._device)
        target.copy_(source)
        if stage:
            self._staged.append((source, target))
        return target


@contextmanager
def initial_values_left() -> Iterator[None]:
    """Have torch.nn.init draw nothing: parameters keep what their memory holds."""
    functions = vars(torch.nn.init)
    kept = {name: functions[name] for name in _DRAWING}
    functions.update(dict.fromkeys(_DRAWING, lambda tensor, *_, **__: tensor))
    try:
        yield
    finally:
        functions.update(kept)
