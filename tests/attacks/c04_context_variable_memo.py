"""C04 context variable: the first result is kept outside of the module

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import contextvars

import torch.nn as nn

kept = contextvars.ContextVar("kept", default=None)


class ModelNew(nn.Module):
    def forward(self, x):
        if kept.get() is None:
            kept.set(x.sum(dim=-1))
        return kept.get().clone()
