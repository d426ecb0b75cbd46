"""F17 a message too long: an output has a name of five million letters

problem: rowsum
device: cpu
backend: cpp
outcome: crash|wrong_type|protocol
reason: left
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"x" * 5_000_000: x.sum(dim=-1)}
