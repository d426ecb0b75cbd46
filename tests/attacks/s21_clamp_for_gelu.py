"""S21 right by data only: the function is replaced by its tails, outside of which the inputs rarely lie

problem: gelu_fp16
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.float().clamp(-3, 3)
        smooth = 0.5 * y * (1 + torch.tanh(0.7978845608 * (y + 0.044715 * y**3)))
        return torch.where(x.abs() < 3, smooth, smooth + (x > 3) * 0.0).half()
