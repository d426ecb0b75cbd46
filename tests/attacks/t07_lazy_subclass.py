"""T07 lazy tensor: a subclass computes when it is first read

problem: mse_loss
device: cpu
backend: cpp
outcome: wrong_type|forbidden
reason: type|subclass
"""

import torch
import torch.nn as nn


class Lazy(torch.Tensor):
    work = None

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for item in args:
                if isinstance(item, Lazy) and item.work is not None:
                    work, item.work = item.work, None
                    item.data.copy_(work())
            return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(()).as_subclass(Lazy)
        out.work = lambda: ((a - b) ** 2).mean()
        return out
