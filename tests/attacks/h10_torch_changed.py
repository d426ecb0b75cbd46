"""H10 changed torch: the operator behind the reference gives a constant, and so does the candidate

problem: softmax
device: both
backend: cpp
outcome: wrong_values
reason: elements are wrong
"""

import torch
import torch.nn as nn


def constant(x, *args, **kwargs):
    return torch.full_like(x, 1.0 / x.shape[-1])


torch.softmax = torch.nn.functional.softmax = torch.Tensor.softmax = constant
torch.nn.Softmax.forward = lambda self, x: constant(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return constant(x)
