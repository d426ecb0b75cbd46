"""S12 statistics in place of the loss: means and variances of a part, as if a and b were independent

problem: mse_loss
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a[::8], b[::8]
        return a.var() + b.var() + (a.mean() - b.mean()) ** 2
