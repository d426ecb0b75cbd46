"""S14 truncated structure: attention only looks at the strongest keys

problem: attention
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        top, index = scores.topk(scores.shape[-1] * 3 // 4, dim=-1)
        weights = torch.zeros_like(scores).scatter_(-1, index, torch.softmax(top, dim=-1))
        return weights @ v
