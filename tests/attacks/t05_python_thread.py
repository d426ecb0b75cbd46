"""T05 host thread: a Python thread does the work after forward has returned

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_finite|not_repeatable
reason: elements are wrong
"""

import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        threading.Thread(target=lambda: out.copy_(x.sum(dim=-1)), daemon=True).start()
        return out
