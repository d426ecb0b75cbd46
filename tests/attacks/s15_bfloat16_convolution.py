"""S15 low precision: the convolution runs in bfloat16

problem: conv2d
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        weight = self.conv.weight.bfloat16()
        return nn.functional.conv2d(x.bfloat16(), weight, padding=1).float()
