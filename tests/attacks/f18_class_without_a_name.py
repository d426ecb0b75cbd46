"""F18 an exception whose class cannot be named: its metaclass raises when it is asked

problem: rowsum
device: cpu
backend: cpp
outcome: crash|runtime_error
reason: left
"""

import torch.nn as nn


class Nameless(type):
    def __getattribute__(cls, name):
        if name in ("__qualname__", "__module__", "__name__"):
            raise KeyboardInterrupt("no name")
        return super().__getattribute__(name)


class Unsayable(BaseException, metaclass=Nameless):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        raise Unsayable
