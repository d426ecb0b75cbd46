"""S15 TF32 by a flag: torch is told to multiply with ten bits of mantissa

problem: matmul
device: cuda
backend: cuda
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn

torch.backends.cuda.matmul.allow_tf32 = True


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
