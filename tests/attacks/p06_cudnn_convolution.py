"""P06 library call: cuDNN convolves behind torch.cudnn_convolution

problem: conv2d
device: cuda
backend: cuda
outcome: not_own|runtime_error
reason: PyTorch|library|own|cudnn
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cudnn_convolution(x, self.conv.weight, (1, 1), (1, 1), (1, 1), 1, False, True, False)
