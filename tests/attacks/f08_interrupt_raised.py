"""F08 raises what is no Exception: KeyboardInterrupt in forward

problem: rowsum
device: both
backend: cpp
outcome: runtime_error|crash
reason: KeyboardInterrupt|left
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt
