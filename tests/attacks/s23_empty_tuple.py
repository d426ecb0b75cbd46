"""S23 empty result: nothing is returned, so that nothing is compared

problem: two_outputs
device: both
backend: cpp
outcome: wrong_type
reason: returns
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return ()
