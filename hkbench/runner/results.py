"""What calls return: described for the evaluator, and handed over to the outbox or left where it lies."""

from __future__ import annotations

from typing import TypeGuard

import torch

from hkbench.protocol import memory, wire
from hkbench.protocol.messages import Object
from hkbench.runner.earlier import Earlier
from hkbench.runner.pool import SharedPool


class Results:
    """The results of one model's calls."""

    def __init__(self) -> None:
        self.pool: SharedPool | None = None
        self.left = False  #: where they lie, for the evaluator to read (on a CPU)
        self.keeps = False  #: a result of any size is held until the next one
        self.places: dict[str, torch.Tensor] = {}  #: in the outbox, by the path of an output
        self.inputs: list[torch.Tensor] = []  #: that a result may not share memory with
        self.delivered: list[torch.Tensor] = []  #: outputs of the last call, which the evaluator reads where they lie
        self._earlier = Earlier([], strict=True)

    def hand_over(self, result: object) -> list[Object]:
        """Describe each leaf and copy those that have the place's shape and dtype to the outbox.

        Where outputs are left for the evaluator to read, says where they lie instead.
        """
        if self.left:
            return self._lying(result)
        for path, leaf in wire.leaves(result, "output"):
            place = self.places.get(path)
            if place is not None and _fits(leaf, place):
                memory.copy_out(place, leaf)
        return self.described(result)

    def deliver(self, result: object) -> list[torch.Tensor]:
        """Return the outputs in memory that the evaluator can map; on a CPU it reads any memory.

        One in other memory is copied to its place, which its call pays for; a leaf that is no such output is
        represented by the place that it should have filled.
        """
        found = dict(wire.leaves(result, "output"))
        delivered = []
        for path, place in self.places.items():
            leaf = found.get(path)
            if _fits(leaf, place) and leaf.device == place.device and leaf.layout == torch.strided:
                plain = leaf.resolve_conj().resolve_neg()
                reached = not plain.numel() or self.pool is None or self.pool.holds(plain)
                delivered.append(plain if reached else place.copy_(plain))
            else:
                delivered.append(place)
        return delivered

    def described(self, result: object) -> list[Object]:
        """Return what the evaluator is told of each leaf; the tensors among them are the result before the next one."""
        described: list[Object] = []
        kept = []
        for path, leaf in wire.leaves(result, "output"):
            if not isinstance(leaf, torch.Tensor):
                plain = leaf if isinstance(leaf, (bool, int, float, str, type(None))) else None
                described.append({"path": path, "type": type(leaf).__name__, "value": plain})
                continue
            # A subclass could compute only when it is read: its exact type is part of the answer.
            entry: Object = {
                "path": path,
                "type": "Tensor" if type(leaf) is torch.Tensor else f"a subclass of Tensor ({type(leaf).__name__})",
                "dtype": memory.dtype_name(leaf.dtype),
                "shape": list(leaf.shape),
                "strides": list(leaf.stride()) if leaf.layout == torch.strided else [],
                "device": leaf.device.type,
                "shares": self._shared_with(leaf) if type(leaf) is torch.Tensor else None,
            }
            described.append(entry)
            kept.append(leaf)
        self._earlier = Earlier(kept, self.keeps)
        return described

    def _lying(self, result: object) -> list[Object]:
        described = self.described(result)
        self.delivered = self.deliver(result)
        lies = dict(zip(self.places, self.delivered, strict=True))
        for item in described:
            output = lies.get(str(item["path"]))
            if output is not None and "strides" in item:
                item["address"] = output.data_ptr()
                item["strides"] = item["strides"] and list(output.stride())  # none: of another kind than strided
        return described

    def _shared_with(self, leaf: torch.Tensor) -> str | None:
        """Return whether a result lies in memory of an input or of the result before."""
        if any(memory.overlap(leaf, tensor) for tensor in self.inputs):
            return "input"
        return "earlier" if self._earlier.overlaps(leaf) else None


def tensors_in(values: object) -> list[torch.Tensor]:
    """Return the tensors among the leaves of nested tuples, lists and dicts."""
    return [leaf for _, leaf in wire.leaves(values, "") if isinstance(leaf, torch.Tensor)]


def _fits(leaf: object, place: torch.Tensor) -> TypeGuard[torch.Tensor]:
    return isinstance(leaf, torch.Tensor) and leaf.shape == place.shape and leaf.dtype == place.dtype
