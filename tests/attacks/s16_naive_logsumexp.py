"""S16 unstable sum: the logarithm of a plain sum of exponentials

problem: logsumexp_of_logits
device: both
backend: cpp
outcome: not_finite
reason: NaN or Inf|Inf|inf
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.exp().sum(dim=-1).log()
