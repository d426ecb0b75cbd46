"""S40 wrong dtype: half precision numbers are returned as single precision

problem: gelu_fp16
device: both
backend: cpp
outcome: wrong_dtype
reason: dtype
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x.float(), approximate="tanh")
