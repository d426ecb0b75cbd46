"""S15 half precision: the convolution runs in half precision

problem: conv2d
device: cuda
backend: cuda
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        return nn.functional.conv2d(x.half(), self.conv.weight.half(), padding=1).float()
