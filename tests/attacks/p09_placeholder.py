"""P09 placeholder: forward is not implemented

problem: rowsum
device: both
backend: cpp
outcome: runtime_error
reason: NotImplemented
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise NotImplementedError
