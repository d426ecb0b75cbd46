"""T07 lazy tensor: a subclass named Tensor computes when it is copied out

problem: matmul
device: cuda
backend: cuda
outcome: wrong_type|suspect|forbidden
reason: type|subclass|clock
"""

import torch
import torch.nn as nn


def late(cls, function, types, args=(), kwargs=None):
    with torch._C.DisableTorchFunctionSubclass():
        for item in args:
            if type(item) is Tensor and vars(item).get("work"):
                item.copy_(vars(item).pop("work")())
        return function(*args, **(kwargs or {}))


Tensor = type("Tensor", (torch.Tensor,), {"__torch_function__": classmethod(late), "__module__": "torch"})


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device).as_subclass(Tensor)
        out.work = lambda: a @ b
        return out
