"""P05 TorchScript: a scripted function is PyTorch all the same

problem: rmsnorm
device: both
backend: cpp
outcome: not_own|forbidden
reason: PyTorch|library|own|script
"""

import torch
import torch.nn as nn


def normalise(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.rms_norm(x, [x.shape[-1]], weight, eps)


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        self.normalise = torch.jit.trace(lambda x, w: normalise(x, w, eps), (torch.ones(2, hidden), torch.ones(hidden)))

    def forward(self, x):
        return self.normalise(x, self.weight)
