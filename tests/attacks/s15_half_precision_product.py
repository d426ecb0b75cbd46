"""S15 low precision: single precision asked, half precision computed

problem: matmul
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
